#include "common/local_sync/load_schedule.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace lockstep {
namespace {

using Catch::Contains;
using Place = LoadSchedule::Place;

LoadScheduleOptions Options() {
  return {.examples = 100,
          .load = 40,
          .max_per_device_batch_size = 5,
          .passes = 3,
          .towers = 2,
          .workers = 2};
}

std::string ErrorOf(const LoadScheduleOptions& options) {
  const absl::StatusOr<LoadSchedule> schedule = LoadSchedule::Create(options);
  CHECK(absl::IsInvalidArgument(schedule.status()));
  return std::string(schedule.status().message());
}

TEST_CASE("a data epoch is full loads and a last one that shrinks, each with its passes") {
  const LoadSchedule schedule = *LoadSchedule::Create(Options());
  CHECK(schedule.loads_per_data_epoch() == 3);  // 40, 40, 20
  CHECK(schedule.share(0) == 20);
  CHECK(schedule.share(2) == 10);
  CHECK(schedule.plan(0).num_batches() == 2);  // 10 tuples per tower
  CHECK(schedule.plan(2).num_batches() == 1);  // 5
  CHECK(schedule.steps_per_data_epoch() == 2 * 3 * 2 + 3);
  CHECK(schedule.At(0) == Place{0, 0, 0});
  CHECK(schedule.At(1) == Place{0, 0, 1});
  CHECK(schedule.At(2) == Place{0, 1, 0});
  CHECK(schedule.At(6) == Place{1, 0, 0});
  CHECK(schedule.At(12) == Place{2, 0, 0});
  CHECK(schedule.At(14) == Place{2, 2, 0});
  CHECK(schedule.At(15) == Place{3, 0, 0});  // of the next data epoch
  CHECK(schedule.data_epoch(3) == 1);
}

TEST_CASE("workers take consecutive shares of a load, which begins where the one before ended") {
  const LoadSchedule schedule = *LoadSchedule::Create(Options());
  CHECK(schedule.FirstExample(0, 0) == 0);
  CHECK(schedule.FirstExample(0, 1) == 20);
  CHECK(schedule.FirstExample(1, 0) == 40);
  CHECK(schedule.FirstExample(2, 1) == 90);
  CHECK(schedule.FirstExample(3, 1) == 120);
}

TEST_CASE("rows of sequences are divided by whole sequences") {
  LoadScheduleOptions options = Options();
  options.examples = 33;    // sequences
  options.max_seq_len = 3;  // 20 rows for each worker: 6 sequences, 18 rows
  const LoadSchedule schedule = *LoadSchedule::Create(options);
  CHECK(schedule.share(0) == 6);
  CHECK(schedule.plan(0).max_seq_len() == 3);
  CHECK(schedule.plan(0).per_device_batch_size() == 3);  // of at most 5 rows
  CHECK(schedule.plan(0).sequences_per_batch() == 1);
  CHECK(schedule.plan(0).num_batches() == 3);
  CHECK(schedule.loads_per_data_epoch() == 3);  // 12, 12, and 9: 4 for each worker
  CHECK(schedule.share(2) == 4);
  CHECK(schedule.FirstExample(1, 1) == 18);
  CHECK(schedule.FirstExample(3, 0) == 33);
  options.max_seq_len = 6;
  CHECK_THAT(ErrorOf(options), Contains("max_per_device_batch_size: expected at least 6"));
  options.max_seq_len = 21;
  CHECK_THAT(ErrorOf(options), Contains("Must load at least 1 tuple sequence per device"));
}

TEST_CASE("a last load with a smaller batch keeps its own size for every worker") {
  LoadScheduleOptions options = Options();
  options.examples = 46;  // 3 rows for each worker: 1 for each tower
  const LoadSchedule schedule = *LoadSchedule::Create(options);
  CHECK(schedule.plan(1).per_device_batch_size() == 1);
  CHECK(schedule.plan(2).per_device_batch_size() == 5);
}

TEST_CASE("a remainder without a row for each tower is left out") {
  LoadScheduleOptions options = Options();
  options.examples = 43;
  const LoadSchedule schedule = *LoadSchedule::Create(options);
  CHECK(schedule.loads_per_data_epoch() == 1);
  CHECK(schedule.At(6) == Place{1, 0, 0});
  CHECK(schedule.FirstExample(1, 0) == 43);
}

TEST_CASE("data smaller than a load is one load") {
  LoadScheduleOptions options = Options();
  options.examples = 30;
  const LoadSchedule schedule = *LoadSchedule::Create(options);
  CHECK(schedule.loads_per_data_epoch() == 1);
  CHECK(schedule.share(0) == 15);
  CHECK(schedule.plan(0).rows_kept() == 10);
}

TEST_CASE("a load that cannot be shared or has too few rows is refused with the field") {
  LoadScheduleOptions options = Options();
  options.load = 41;
  CHECK(ErrorOf(options) ==
        "local_sync.load: expected a multiple of 2, the number of workers, got 41. Remedy: use 42");
  options.load = 2;
  CHECK_THAT(ErrorOf(options),
             Contains("local_sync: Must load at least 1 tuple sequence per device, got only 1"));
  options = Options();
  options.examples = 3;
  CHECK_THAT(ErrorOf(options), Contains("got 3 examples in the data"));
  options = Options();
  options.max_per_device_batch_size = 0;
  CHECK_THAT(ErrorOf(options), Contains("max_per_device_batch_size: expected at least 1, got 0"));
  options = Options();
  options.passes = 0;
  CHECK_THAT(ErrorOf(options), Contains("expected at least 1 worker, row and pass"));
  options.passes = std::numeric_limits<int64_t>::max();
  CHECK_THAT(ErrorOf(options), Contains("local_sync.passes: expected fewer than 2^63"));
}

TEST_CASE("examples of the last step still have numbers") {
  const LoadSchedule schedule = *LoadSchedule::Create(Options());
  const int64_t step = schedule.last_step();
  CHECK(step > int64_t{1} << 58);
  CHECK(schedule.FirstExample(schedule.At(step).load, 1) > 0);
}

}  // namespace
}  // namespace lockstep
