// Jobs with local_sync in real processes.
#include <signal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/dataset/idx.h"
#include "tests/integration/training_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr int kBatch = 96;

// The network and the data of tests/oracle/mlp, but for the digits behind the last whole batch:
// a load ends with its data epoch, where batches go on.
class Mlp {
 public:
  Mlp() {
    const std::string digits = Binary("deploy/data/digits/");
    Cut(digits + "train-images.idx.gz", "images");
    Cut(digits + "train-labels.idx.gz", "labels");
  }

  JobText Job(const std::string& optimizer, const std::string& more) const {
    return {.global_batch = kBatch,
            .max_steps = 200,
            .optimizer = optimizer,
            .data = absl::StrCat("idx { train_images: '", folder_.Path("images"),
                                 "' train_labels: '", folder_.Path("labels"), "' } scale: 0.0625"),
            .more = absl::StrCat("seed: 11 ", more)};
  }

 private:
  void Cut(const std::string& from, const std::string& to) {
    const auto records = ReadIdx(from);
    REQUIRE(records.ok());
    REQUIRE(records->type == ElementType::kUInt8);
    const int64_t kept = records->count / kBatch * kBatch;
    std::vector<uint32_t> extents = {static_cast<uint32_t>(kept)};
    for (const int64_t extent : records->shape.dims()) {
      extents.push_back(static_cast<uint32_t>(extent));
    }
    const std::string bytes(reinterpret_cast<const char*>(records->bytes.data()),
                            kept * records->shape.num_elements());
    folder_.Write(to, Idx(0x08, extents, bytes));
  }

  const TemporaryFolder folder_;
};

JobText WithLoads(JobText job, int most, int load, int passes) {
  job.global_batch = 0;
  absl::StrAppend(&job.more, " local_sync { max_per_device_batch_size: ", most, " load: ", load,
                  " passes: ", passes, " }");
  return job;
}

TEST_CASE("where a load is one batch, local_sync trains as parameter_server does") {
  const Mlp mlp;
  for (const std::string optimizer : {"sgd {} learning_rate { base: 0.1 }",
                                      "momentum { momentum: 0.9 } learning_rate { base: 0.02 }",
                                      "adam {} learning_rate { base: 0.002 }"}) {
    CAPTURE(optimizer);
    const std::vector<double> one = LossesOf(1, 1, mlp.Job(optimizer, ""));
    REQUIRE(one.size() == 200);
    CHECK(one.back() < one.front() / 2);
    for (const int towers : {1, 2, 4}) {
      CAPTURE(towers);
      const JobText job = mlp.Job(optimizer, absl::StrCat("towers: ", towers));
      const std::vector<double> loads = LossesOf(1, 1, WithLoads(job, kBatch / towers, kBatch, 1));
      CHECK(LargestRelativeDifference(one, loads) < 1e-6);
      // The same towers and the same sums: the same bits.
      CHECK(loads == LossesOf(1, 1, job));
    }
  }
}

TEST_CASE("a worker that is killed within a block goes on with it to the same bits") {
  const Mlp mlp;
  JobText job = WithLoads(
      mlp.Job("momentum { momentum: 0.9 } learning_rate { base: 0.02 }", "towers: 2"), 8, 640, 5);
  job.max_steps = 1000;  // 20 batches of each worker in each pass: 100 steps of each load
  const std::vector<double> undisturbed = LossesOf(1, 2, job);
  Cluster cluster(1, 2);
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(150, kPatience));
  cluster.worker(1).Signal(SIGKILL);
  REQUIRE(cluster.worker(1).Wait(kPatience) == 137);
  Process successor(cluster.Worker(1));
  const auto code = cluster.chief().Wait(kPatience);
  INFO(cluster.Logs() << "successor:\n" << successor.Output());
  REQUIRE(code == 0);
  CHECK(successor.Wait(kPatience) == 0);
  CHECK(Losses(nlohmann::json::parse(cluster.Summary())) == undisturbed);
}

}  // namespace
}  // namespace lockstep::test
