#include "worker/collective/gathered_batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::worker {

GatheredBatch::GatheredBatch(absl::Span<const ValueDestinationPair> pairs)
    : devices_(pairs[0].value.devices()) {
  std::ranges::sort(devices_);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const TensorView& first = std::get<TensorView>(pairs[i].value.values[0].values[0]);
    specs_.push_back({absl::StrCat("value ", i), first.dtype, first.shape});
  }
  for (const DeviceId& device : devices_) {
    std::vector<Tensor>& own = tensors_.emplace_back();
    std::vector<MutableTensorView>& views = views_.emplace_back();
    for (const ValueDestinationPair& pair : pairs) {
      const DeviceValue& on_device = pair.value.at(device);
      LOCKSTEP_CHECK(on_device.values.size() == 1);
      own.push_back(std::get<Tensor>(CloneOf(on_device.values[0])));
      views.push_back(own.back().view());
    }
  }
}

std::vector<Mirrored> GatheredBatch::TakeResults(absl::Span<const ValueDestinationPair> pairs) {
  std::vector<Mirrored> results(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Tensor& first = tensors_[0][i];
    // The first one's tensor stays until the end: devices outside get copies of it.
    for (const DeviceId& device : pairs[i].destinations.devices) {
      const auto found = std::ranges::find(devices_, device);
      if (found != devices_.end() && found != devices_.begin()) {
        results[i].copies.push_back({device, std::move(tensors_[found - devices_.begin()][i])});
      } else {
        results[i].copies.push_back({device, first.Clone()});
      }
    }
  }
  return results;
}

}  // namespace lockstep::worker
