#include "worker/data/slice.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

namespace lockstep::worker {
namespace {

PipelineOptions Options(uint32_t replica, uint32_t replicas, int64_t towers, int64_t batch) {
  return {.replica = replica, .num_replicas = replicas, .batch_per_tower = batch, .towers = towers};
}

TEST_CASE("Replicas and towers share a global batch without gap or overlap, in order") {
  for (uint32_t replicas : {1, 2, 3, 6}) {
    for (int64_t towers : {1, 2}) {
      const int64_t batch = 12 / replicas / towers;
      for (int64_t step : {0, 1, 77}) {
        int64_t next = step * 12;
        for (uint32_t replica = 0; replica < replicas; ++replica) {
          const auto slice = Slice::Create(Options(replica, replicas, towers, batch));
          REQUIRE(slice.ok());
          CHECK(slice->global_batch() == 12);
          for (int64_t tower = 0; tower < towers; ++tower) {
            CHECK(slice->Begin(step, tower) == next);
            next += slice->batch_per_tower();
          }
        }
        CHECK(next == (step + 1) * 12);
      }
    }
  }
}

TEST_CASE("The last step ends within 64 bits and the one after it would not") {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (int64_t batch : {int64_t{1}, int64_t{7}, int64_t{1} << 40, kMax / 6}) {
    const auto slice = Slice::Create(Options(2, 3, 2, batch));
    REQUIRE(slice.ok());
    const __int128 global = slice->global_batch();
    CHECK((global * slice->last_step() + global <= kMax));
    CHECK((global * (slice->last_step() + 2) > kMax));
    CHECK(slice->Begin(slice->last_step(), 1) >= 0);
  }
}

TEST_CASE("Slices that cannot be are refused by name") {
  const std::pair<PipelineOptions, const char*> cases[] = {
      {Options(0, 1, 1, 0), "batch per tower: expected at least 1, got 0"},
      {Options(0, 1, 1, -4), "batch per tower: expected at least 1, got -4"},
      {Options(0, 1, 0, 1), "towers: expected at least 1, got 0"},
      {Options(0, 0, 1, 1), "replicas: expected at least 1, got 0"},
      {Options(3, 3, 1, 1), "replica: expected less than 3, got 3"},
      {Options(0, 2, 1, int64_t{1} << 62), "64 bits"},
      {Options(0, 1, int64_t{1} << 32, int64_t{1} << 32), "64 bits"},
  };
  for (const auto& [options, message] : cases) {
    const auto status = Slice::Create(options).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(message));
  }
}

}  // namespace
}  // namespace lockstep::worker
