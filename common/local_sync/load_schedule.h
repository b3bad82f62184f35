// LoadSchedule assigns to each step of a job with local_sync a minibatch of a load.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/local_sync/load_plan.h"

namespace lockstep {

struct LoadScheduleOptions {
  int64_t examples = 0;                   // of the training data
  int64_t load = 0;                       // rows of all workers together
  int64_t max_per_device_batch_size = 0;  // rows
  int64_t max_seq_len = 1;                // rows of one example: a sequence where there are several
  int64_t passes = 1;                     // over each load
  int64_t towers = 1;                     // per worker
  int64_t workers = 1;
};

// A value; pure. A data epoch is cut into loads of `load` rows, but whole examples; the remainder
// is its last load. Each worker takes the same number of examples of a load. A remainder with less
// than one example for each tower of each worker is left out.
class LoadSchedule {
 public:
  // INVALID_ARGUMENT naming the option: a load that workers cannot share evenly or that has less
  // than one row per tower; too few examples for one load.
  static absl::StatusOr<LoadSchedule> Create(const LoadScheduleOptions& options);

  struct Place {
    int64_t load = 0;   // counted over all data epochs
    int64_t pass = 0;   // of this load
    int64_t batch = 0;  // of this pass: which one of num_batches()
    friend bool operator==(const Place&, const Place&) = default;
  };
  // step >= 0.
  Place At(int64_t step) const;

  // The plan of the load with this number.
  const LoadPlan& plan(int64_t load) const { return load % loads_ == loads_ - 1 ? last_ : full_; }
  int64_t data_epoch(int64_t load) const { return load / loads_; }
  // The first row of worker w's share, counted in examples of the endless stream of data epochs.
  int64_t FirstExample(int64_t load, int64_t worker) const;
  int64_t share(int64_t load) const;  // examples of each worker, before truncation

  int64_t loads_per_data_epoch() const { return loads_; }
  int64_t steps_per_data_epoch() const { return steps_; }
  int64_t last_step() const;  // beyond it examples do not fit into 64 bits

 private:
  LoadSchedule(const LoadScheduleOptions& options, const LoadPlan& full, const LoadPlan& last)
      : options_(options), full_(full), last_(last) {}
  int64_t StepsOf(const LoadPlan& plan) const { return options_.passes * plan.num_batches(); }

  LoadScheduleOptions options_;
  LoadPlan full_;
  LoadPlan last_;      // of a data epoch
  int64_t loads_ = 1;  // per data epoch
  int64_t steps_ = 1;  // per data epoch
  int64_t last_share_ = 0;
};

}  // namespace lockstep
