#include "common/local_sync/load_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

absl::Status CheckRequest(const LoadRequest& request) {
  const auto too_low = [](absl::string_view name, int64_t got) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected at least 1, got ", got, ". Remedy: raise it"));
  };
  if (request.towers < 1) return too_low("towers", request.towers);
  if (request.max_per_device_batch_size < 1) {
    return too_low("max_per_device_batch_size", request.max_per_device_batch_size);
  }
  if (request.rows < 0 || request.state_rows.value_or(0) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("rows: expected 0 or more, got ", request.rows,
                                                   " of inputs and ",
                                                   request.state_rows.value_or(0), " of states"));
  }
  return absl::OkStatus();
}

absl::Status TooFew(int64_t sequences, int64_t towers) {
  return absl::InvalidArgumentError(
      absl::StrCat("Must load at least 1 tuple sequence per device, got only ", sequences,
                   " total. Remedy: ", "load at least ", towers, ", one for each tower"));
}

}  // namespace

absl::StatusOr<LoadPlan> LoadPlan::Create(const LoadRequest& request) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  const int64_t towers = request.towers;
  const int64_t sequences = request.state_rows.value_or(request.rows);
  if (sequences < towers) return TooFew(sequences, towers);
  LoadPlan plan;
  plan.towers_ = towers;
  plan.has_states_ = request.state_rows.has_value();
  plan.max_seq_len_ = plan.has_states_ ? request.rows / sequences : 1;
  if (plan.max_seq_len_ < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("No data loaded? expected at least one row for each of ", sequences,
                     " sequences, got ", request.rows, ". Remedy: load the rows of the sequences"));
  }
  const int64_t most = request.max_per_device_batch_size / plan.max_seq_len_;  // per tower
  if (most < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_per_device_batch_size: expected at least ", plan.max_seq_len_,
                     ", the length of a sequence, got ", request.max_per_device_batch_size,
                     ". Remedy: raise it, or load shorter sequences"));
  }
  // Both are whole minibatches over all towers, but without overflow for a huge maximum.
  const int64_t per_tower = std::min(most, sequences / towers);
  plan.per_device_batch_size_ = per_tower * plan.max_seq_len_;
  const int64_t batches = sequences / (per_tower * towers);
  plan.tuples_per_device_ = batches * plan.per_device_batch_size_;
  return plan;
}

RowSpan LoadPlan::StateRowsOf(int64_t tower) const {
  if (!has_states_) return {};
  const int64_t sequences = tuples_per_device_ / max_seq_len_;
  return {tower * sequences, sequences};
}

RowSpan LoadPlan::RowsAt(int64_t batch_index) const {
  return {batch_index / max_seq_len_ * max_seq_len_, per_device_batch_size_};
}

RowSpan LoadPlan::StateRowsAt(int64_t batch_index) const {
  if (!has_states_) return {};
  return {batch_index / max_seq_len_, per_device_batch_size_ / max_seq_len_};
}

absl::Status LoadPlan::CheckIndex(int64_t batch_index) const {
  const int64_t last = tuples_per_device_ - per_device_batch_size_;
  if (batch_index >= 0 && batch_index <= last) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "batch_index: expected 0 to ", last, " of ", tuples_per_device_,
      " tuples per device in batches of ", per_device_batch_size_, ", got ", batch_index));
}

}  // namespace lockstep
