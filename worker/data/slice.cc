#include "worker/data/slice.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"

namespace lockstep::worker {
namespace {

absl::Status Wrong(absl::string_view name, absl::string_view expected, int64_t got) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", expected, ", got ", got, ". Remedy: correct the job."));
}

}  // namespace

absl::StatusOr<Slice> Slice::Create(const PipelineOptions& options) {
  if (options.batch_per_tower < 1) {
    return Wrong("batch per tower", "at least 1", options.batch_per_tower);
  }
  if (options.towers < 1) return Wrong("towers", "at least 1", options.towers);
  if (options.num_replicas < 1) return Wrong("replicas", "at least 1", options.num_replicas);
  if (options.replica >= options.num_replicas) {
    return Wrong("replica", absl::StrCat("less than ", options.num_replicas), options.replica);
  }
  const auto replica_batch = CheckedMultiply(options.towers, options.batch_per_tower);
  const auto global_batch =
      replica_batch ? CheckedMultiply(*replica_batch, int64_t{options.num_replicas}) : std::nullopt;
  if (!global_batch) {
    return Wrong("batch per tower", "a global batch that fits into 64 bits",
                 options.batch_per_tower);
  }
  Slice slice;
  slice.batch_per_tower_ = options.batch_per_tower;
  slice.towers_ = options.towers;
  slice.global_batch_ = *global_batch;
  slice.replica_begin_ = options.replica * *replica_batch;
  return slice;
}

int64_t Slice::last_step() const { return std::numeric_limits<int64_t>::max() / global_batch_ - 1; }

}  // namespace lockstep::worker
