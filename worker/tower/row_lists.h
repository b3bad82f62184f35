// RowLists holds, where ops read them, the lists of the table rows that a step's values have.
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

// Each table has a place on the device for the longest list, preceded by its length. Only the
// contents of this memory differ between steps, so that the work of a step can be captured as a
// graph. On a host device ops read the caller's lists.
//
// Not thread-safe. Bring allocates nothing.
class RowLists {
 public:
  // `most_rows`: by variable, the most rows of a table in a step; 0 if it is not a table.
  // RESOURCE_EXHAUSTED: memory is short. `device` outlives the lists.
  static absl::StatusOr<RowLists> Create(std::span<const int64_t> most_rows, Device* device);

  // Enqueues the copies. `rows` are as in VariableValues and stay until the stream has passed. Work
  // enqueued before must no longer read the lists of an earlier call. INTERNAL for more rows than
  // planned.
  absl::Status Bring(std::span<const std::span<const int64_t>> rows, Stream* stream);

  // As in Op::ForwardArgs, by variable. Empty as a whole: tables are whole.
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
