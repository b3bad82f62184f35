#include "worker/tower/row_lists.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {
namespace {

// In errors: what there is no memory for.
constexpr char kLists[] = "lists of the tables' rows of a step";

}  // namespace

absl::StatusOr<RowLists> RowLists::Create(std::span<const int64_t> most_rows, Device* device) {
  RowLists made;
  made.lists_.resize(most_rows.size());
  made.counts_.resize(most_rows.size());
  size_t bytes = 0;
  for (const int64_t most : most_rows) {
    made.places_.push_back({most, bytes});
    if (most > 0) bytes += Tensor::RoomFor(static_cast<size_t>(1 + most) * sizeof(int64_t));
  }
  if (device->is_host() || bytes == 0) return made;
  absl::StatusOr<DeviceBuffer> host = device->AllocatePinned(bytes);
  if (!host.ok()) return Annotate(host.status(), kLists);
  absl::StatusOr<DeviceBuffer> memory = device->Allocate(bytes);
  if (!memory.ok()) return Annotate(memory.status(), kLists);
  made.host_ = *std::move(host);
  made.device_ = *std::move(memory);
  return made;
}

absl::Status RowLists::Bring(std::span<const std::span<const int64_t>> rows, Stream* stream) {
  whole_ = rows.empty();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Place& place = places_[i];
    if (place.most_rows == 0) continue;
    const auto count = static_cast<int64_t>(rows[i].size());
    if (count > place.most_rows) {
      return absl::InternalError(absl::StrCat(
          "rows of variable ", i, " in a step: expected at most ", place.most_rows, ", got ", count,
          ". Remedy: report this bug; memory is planned for the examples of the job's batches"));
    }
    if (device_ == nullptr) {
      counts_[i] = count;
      lists_[i] = {&counts_[i], rows[i].data()};
      continue;
    }
    auto* const list = reinterpret_cast<int64_t*>(host_.get() + place.offset);
    list[0] = count;
    std::ranges::copy(rows[i], list + 1);
    auto* const to = reinterpret_cast<int64_t*>(device_.get() + place.offset);
    stream->CopyToDevice(to, list, static_cast<size_t>(1 + count) * sizeof(int64_t));
    lists_[i] = {to, to + 1};
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
