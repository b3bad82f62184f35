// Training on loads, over parameter servers.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/unit/worker/step/click_job.h"

namespace lockstep::worker {
namespace {

using test::ClickJob;
using test::ClickJobOptions;

struct Trained {
  std::vector<float> losses;
  std::vector<float> table;
  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained TrainedBy(const ClickJobOptions& options) {
  ClickJob job(options);
  for (const absl::Status& end : job.Train()) {
    INFO(end);
    REQUIRE(end.ok());
  }
  return {job.losses(), job.Values("table/table")};
}

// 64 examples.
ClickJobOptions Loads(int64_t load, int64_t passes, int64_t towers, int64_t batch,
                      int64_t workers = 1) {
  ClickJobOptions options;
  options.workers = static_cast<uint32_t>(workers);
  options.towers = towers;
  options.batch = batch;
  options.loads = LoadScheduleOptions{.load = load,
                                      .max_per_device_batch_size = batch,
                                      .passes = passes,
                                      .towers = towers,
                                      .workers = workers};
  return options;
}

TEST_CASE("loads of one batch train to the bits of a job without loads") {
  for (const int64_t workers : {1, 2}) {
    for (const int64_t towers : {1, 2}) {
      CAPTURE(workers, towers);
      ClickJobOptions loads = Loads(16 * workers, 1, towers, 16 / towers, workers);
      ClickJobOptions plain = loads;
      plain.loads.reset();
      CHECK(TrainedBy(loads) == TrainedBy(plain));
    }
  }
}

TEST_CASE("where a load is one batch, 1, 2 and 4 towers train alike") {
  const auto train = [](int64_t towers) {
    ClickJobOptions options = Loads(16, 1, towers, 16 / towers);
    options.optimizer = "sgd {} learning_rate { base: 0.05 }";
    return TrainedBy(options).losses;
  };
  const std::vector<float> one = train(1);
  for (const int64_t towers : {2, 4}) {
    const std::vector<float> more = train(towers);
    REQUIRE(more.size() == one.size());
    for (size_t step = 0; step < one.size(); ++step) {
      CHECK(more[step] == Approx(one[step]).epsilon(1e-6));
    }
  }
}

TEST_CASE("a job that is restored within a load goes on to the bits of an unbroken one") {
  ClickJobOptions options = Loads(32, 3, 2, 4, 2);  // 6 steps a load
  options.end = 20;
  const Trained unbroken = TrainedBy(options);
  for (const int64_t broken_at : {1, 4, 11}) {
    CAPTURE(broken_at);
    ClickJobOptions first = options;
    first.end = broken_at;
    ClickJob saved(first);
    for (const absl::Status& end : saved.Train()) REQUIRE(end.ok());
    ClickJobOptions rest = options;
    rest.restore_from = saved.Save();
    rest.start = broken_at;
    const Trained gone_on = TrainedBy(rest);
    CHECK(gone_on.losses ==
          std::vector<float>(unbroken.losses.begin() + broken_at, unbroken.losses.end()));
    CHECK(gone_on.table == unbroken.table);
  }
}

}  // namespace
}  // namespace lockstep::worker
