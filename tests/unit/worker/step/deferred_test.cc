// Training over parameter servers with towers whose work runs in any order: another one for each of
// a thousand steps.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/unit/worker/step/click_job.h"

namespace lockstep::worker {
namespace {

using test::ClickJob;
using test::ClickJobOptions;

constexpr int64_t kSteps = 1000;

struct Trained {
  std::vector<float> losses;
  std::vector<float> table;
  std::vector<float> kernel;
};

Trained TrainedOn(const char* device, const ClickJobOptions& options) {
  setenv(lockstep::test::kTestDeviceVariable, device, /*overwrite=*/1);
  ClickJob job(options);
  for (const absl::Status& end : job.Train()) {
    INFO(end);
    CHECK(end.ok());
  }
  return {job.losses(), job.Values("table/table"), job.Values("hidden/kernel")};
}

TEST_CASE("a thousand steps in as many orders train to the bits of a CPU") {
  for (const int64_t towers : {1, 2}) {
    CAPTURE(towers);
    const ClickJobOptions options{.optimizer =
                                      "momentum { momentum: 0.9 } learning_rate { base: 0.01 } "
                                      "clipping { norm: 0.05 }",
                                  .towers = towers,
                                  .end = kSteps};
    const Trained on_cpu = TrainedOn("cpu", options);
    const Trained deferred = TrainedOn("deferred", options);
    CHECK(on_cpu.losses.size() == kSteps);
    CHECK(on_cpu.losses == deferred.losses);
    CHECK(on_cpu.table == deferred.table);
    CHECK(on_cpu.kernel == deferred.kernel);
  }
}

}  // namespace
}  // namespace lockstep::worker
