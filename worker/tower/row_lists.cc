#include "worker/tower/row_lists.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {

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
  LOCKSTEP_ASSIGN_OR_RETURN(made.host_, device->AllocatePinned(bytes));
  absl::StatusOr<DeviceBuffer> memory = device->Allocate(bytes);
  if (!memory.ok()) return Annotate(memory.status(), "which rows of the tables a step has");
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
      return absl::InternalError(absl::StrCat("a step has ", count, " rows of a table, planned are",
                                              " at most ", place.most_rows));
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
