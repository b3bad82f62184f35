// Which rows of its tables a step's values hold, where ops read it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/device.h"
#include "worker/ops/op.h"

namespace lockstep::worker {

// Each table has a place on the device for the longest list, its length in front. What a step has
// of them differs in the contents of this memory alone, so that its work can be captured as a
// graph. On a host device ops read the caller's lists.
//
// Not thread-safe. Bring allocates nothing.
class RowLists {
 public:
  // `most_rows`: by variable, how many rows of a table a step has at most; 0 of one that is none.
  // RESOURCE_EXHAUSTED where memory is short. `device` outlives the lists.
  static absl::StatusOr<RowLists> Create(std::span<const int64_t> most_rows, Device* device);

  // Enqueues the copies. `rows`: as VariableValues has them; they stay until the stream has passed.
  // Nothing that was enqueued before may still read lists of an earlier call. INTERNAL for more
  // rows than planned.
  absl::Status Bring(std::span<const std::span<const int64_t>> rows, Stream* stream);

  // As Op::ForwardArgs has them, by variable. Empty as a whole: tables are whole.
  std::span<const TableRows> on_device() const {
    return {lists_.data(), whole_ ? 0 : lists_.size()};
  }

 private:
  struct Place {
    int64_t most_rows = 0;
    size_t offset = 0;  // in both memories
  };

  bool whole_ = true;
  std::vector<Place> places_;     // by variable
  std::vector<TableRows> lists_;  // likewise
  std::vector<int64_t> counts_;   // of a host device
  DeviceBuffer host_;             // pinned; null on a host device
  DeviceBuffer device_;           // likewise
};

}  // namespace lockstep::worker
