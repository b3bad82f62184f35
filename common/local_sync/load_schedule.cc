#include "common/local_sync/load_schedule.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr char kField[] = "local_sync";

absl::Status Check(const LoadScheduleOptions& options) {
  if (options.workers < 1 || options.load < 1 || options.passes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField, ": expected at least 1 worker, row and pass, got ", options.workers,
                     ", ", options.load, " and ", options.passes, ". Remedy: correct the job"));
  }
  LOCKSTEP_CHECK(options.max_seq_len >= 1);
  if (options.load % options.workers == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      kField, ".load: expected a multiple of ", options.workers, ", the number of workers, got ",
      options.load, ". Remedy: use ", (options.load / options.workers + 1) * options.workers));
}

// Examples of each worker in a full load.
int64_t ShareOf(const LoadScheduleOptions& options) {
  return options.load / options.workers / options.max_seq_len;
}

absl::StatusOr<LoadPlan> PlanOf(const LoadScheduleOptions& options, int64_t share) {
  return LoadPlan::Create({.rows = share * options.max_seq_len,
                           .state_rows = share,
                           .max_per_device_batch_size = options.max_per_device_batch_size,
                           .towers = options.towers});
}

}  // namespace

absl::StatusOr<LoadSchedule> LoadSchedule::Create(const LoadScheduleOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
  const int64_t share = ShareOf(options);
  const absl::StatusOr<LoadPlan> full = PlanOf(options, share);
  if (!full.ok()) return Annotate(full.status(), kField);
  const int64_t per_load = share * options.workers;
  const int64_t full_loads = options.examples / per_load;
  const int64_t rest = options.examples % per_load / options.workers;
  const bool has_rest = rest >= options.towers;
  if (full_loads == 0 && !has_rest) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField, ".load: expected at least 1 example for each of ", options.towers,
                     " towers of ", options.workers, " workers, got ", options.examples,
                     " examples in the data. Remedy: use more data, or fewer towers or workers"));
  }
  absl::StatusOr<LoadPlan> last = has_rest ? PlanOf(options, rest) : full;
  if (!last.ok()) return Annotate(last.status(), kField);
  LoadSchedule schedule(options, *full, *last);
  schedule.loads_ = full_loads + (has_rest ? 1 : 0);
  schedule.last_share_ = has_rest ? rest : share;
  const auto steps =
      CheckedMultiply(schedule.loads_, CheckedMultiply(options.passes, full->num_batches())
                                           .value_or(std::numeric_limits<int64_t>::max()));
  if (!steps.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kField, ".passes: expected fewer than 2^63 steps in a data epoch, got ", options.passes,
        " passes over ", options.examples, " examples. Remedy: lower it"));
  }
  schedule.steps_ = (schedule.loads_ - 1) * schedule.StepsOf(*full) + schedule.StepsOf(*last);
  return schedule;
}

LoadSchedule::Place LoadSchedule::At(int64_t step) const {
  const int64_t in_epoch = step % steps_;
  const int64_t of_full = StepsOf(full_);
  const int64_t load = std::min(in_epoch / of_full, loads_ - 1);
  const int64_t in_load = in_epoch - load * of_full;
  const int64_t batches = (load == loads_ - 1 ? last_ : full_).num_batches();
  return {step / steps_ * loads_ + load, in_load / batches, in_load % batches};
}

int64_t LoadSchedule::share(int64_t load) const {
  return load % loads_ == loads_ - 1 ? last_share_ : ShareOf(options_);
}

int64_t LoadSchedule::FirstExample(int64_t load, int64_t worker) const {
  return data_epoch(load) * options_.examples +
         load % loads_ * ShareOf(options_) * options_.workers + worker * share(load);
}

int64_t LoadSchedule::last_step() const {
  const int64_t epochs = std::numeric_limits<int64_t>::max() / options_.examples - 1;
  return CheckedMultiply(epochs, steps_).value_or(std::numeric_limits<int64_t>::max()) - 1;
}

}  // namespace lockstep
