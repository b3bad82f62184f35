// Replicated jobs in real processes: how they begin, and what they refuse.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

std::string Replicated(const std::string& fields) {
  return absl::StrCat("strategy { replicated { ", fields, " } } ");
}

constexpr char kAdam[] = "adam {} learning_rate { base: 0.01 }";

TEST_CASE("the initial sync and a checkpoint bridge strategies and numbers of workers") {
  const TemporaryFolder saved;
  const auto job = [&](int steps, const std::string& folder, const std::string& more) {
    return JobText{.global_batch = 24,
                   .max_steps = steps,
                   .optimizer = kAdam,
                   .checkpoint = "folder: '" + folder + "' every_steps: 10",
                   .more = more};
  };
  const std::vector<double> whole = LossesOf(2, 2, job(20, saved.path(), ""));
  const std::vector<double> rest(whole.begin() + 10, whole.end());
  for (const auto& [workers, towers] : {std::pair(2, 1), std::pair(1, 2), std::pair(1, 1)}) {
    CAPTURE(workers, towers);
    Cluster cluster(1, workers);
    cluster.StartAll(job(20, "again", absl::StrCat(Replicated(""), "towers: ", towers)),
                     {"--restore=" + saved.Path("ckpt-10")});
    const std::vector<double> losses = Losses(Finish(cluster));
    CHECK(LargestRelativeDifference(rest, losses) < 1e-6);
  }
}

TEST_CASE("what the group cannot do ends every process with 78 and the field") {
  const auto [fields, place] =
      GENERATE(table<std::string, std::string>({{"mode: CPU", "strategy.replicated.mode: CPU"},
                                                {"mode: NCCL", "strategy.replicated.mode: NCCL"},
                                                {"cross_tower_ops { multi_worker_all_reduce { "
                                                 "all_reduce_spec: 'pscpu:2k' } }",
                                                 "not well formed"}}));
  CAPTURE(fields);
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = 10, .more = Replicated(fields)});
  CHECK(cluster.chief().Wait(absl::Seconds(30)) == 78);
  CHECK_THAT(cluster.Logs(), Contains(place));
}

}  // namespace
}  // namespace lockstep::test
