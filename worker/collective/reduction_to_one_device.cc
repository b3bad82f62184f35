#include "worker/collective/reduction_to_one_device.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/element_math.h"

namespace lockstep::worker {
namespace {

void AddInOrder(absl::Span<const TensorView> terms, const MutableTensorView& sum) {
  SumAndDivide(terms, 1, {0, static_cast<size_t>(sum.num_elements())}, sum.data);
}

Tensor Accumulate(absl::Span<const TensorView> terms, const AccumulationFn& add) {
  Tensor sum(terms[0].dtype, terms[0].shape);
  add(terms, sum.view());
  return sum;
}

OwnedValue ReduceDense(const PerDevice& value, int divisor, const AccumulationFn& add) {
  std::vector<Tensor> local;  // sums of MapOutputs
  local.reserve(value.values.size());
  std::vector<TensorView> terms;
  for (const DeviceValue& on_device : value.values) {
    if (on_device.values.empty()) continue;
    std::vector<TensorView> own;
    for (const Value& one : on_device.values) own.push_back(std::get<TensorView>(one));
    if (own.size() > 1) {
      local.push_back(Accumulate(own, AddInOrder));
      own[0] = local.back().view();
    }
    terms.push_back(own[0]);
  }
  Tensor sum = Accumulate(terms, add);
  if (divisor > 1) {
    const TensorView whole = sum.view();
    SumAndDivide({&whole, 1}, divisor, {0, static_cast<size_t>(sum.num_elements())}, sum.data());
  }
  return sum;
}

OwnedValue GatherSlices(const PerDevice& value, int divisor) {
  std::vector<IndexedSlicesView> parts;
  IndexedSlices gathered;
  for (const DeviceValue& on_device : value.values) {
    for (const Value& one : on_device.values) {
      parts.push_back(std::get<IndexedSlicesView>(one));
      const auto& indices = parts.back().indices;
      gathered.indices.insert(gathered.indices.end(), indices.begin(), indices.end());
    }
  }
  const TensorView& first = parts[0].values;
  const auto rows = static_cast<int64_t>(gathered.indices.size());
  gathered.values = Tensor(first.dtype, WithRows(first.shape, rows));
  auto* to = static_cast<std::byte*>(gathered.values.data());
  for (const IndexedSlicesView& part : parts) {
    const size_t bytes = part.values.num_bytes();
    if (bytes == 0) continue;
    std::memcpy(to, part.values.data, bytes);
    to += bytes;
  }
  const std::vector<int> counts(gathered.indices.size(), divisor);
  DivideRows(first.dtype, SliceWidth(first), gathered.values.data(), counts);
  return gathered;
}

}  // namespace

ReductionToOneDevice::ReductionToOneDevice(std::optional<DeviceId> reduce_to_device,
                                           AccumulationFn accumulation_fn)
    : reduce_to_device_(reduce_to_device),
      accumulation_fn_(accumulation_fn != nullptr ? std::move(accumulation_fn) : AddInOrder) {}

DeviceId ReductionToOneDevice::Target(const Destinations& destinations) const {
  LOCKSTEP_CHECK(!destinations.devices.empty());
  return reduce_to_device_.value_or(destinations.devices[0]);
}

absl::StatusOr<Mirrored> ReductionToOneDevice::ReduceChecked(Aggregation aggregation,
                                                             const PerDevice& value,
                                                             const Destinations& destinations) {
  int count = 0;
  for (const DeviceValue& on_device : value.values) {
    count += static_cast<int>(on_device.values.size());
  }
  const int divisor = aggregation == Aggregation::kMean ? count : 1;
  const OwnedValue reduced = value.has_sparse() ? GatherSlices(value, divisor)
                                                : ReduceDense(value, divisor, accumulation_fn_);
  return Broadcast(ViewOf(reduced), destinations);
}

absl::StatusOr<std::vector<Mirrored>> ReductionToOneDevice::BatchReduceChecked(
    Aggregation aggregation, absl::Span<const ValueDestinationPair> pairs) {
  return ReduceEach(aggregation, pairs);
}

}  // namespace lockstep::worker
