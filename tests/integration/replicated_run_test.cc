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

TEST_CASE("a parameter server, and another number of workers, go on from the checkpoint of one") {
  const TemporaryFolder saved;
  const auto job = [&](const std::string& folder, const std::string& more) {
    return JobText{.global_batch = 24,
                   .max_steps = 20,
                   .optimizer = kAdam,
                   .checkpoint = "folder: '" + folder + "' every_steps: 10",
                   .more = more};
  };
  const std::vector<double> whole = LossesOf(1, 2, job(saved.path(), Replicated("")));
  const std::vector<double> rest(whole.begin() + 10, whole.end());
  for (const auto& [workers, more] :
       {std::pair(2, std::string()), std::pair(1, std::string("towers: 2 ")),
        std::pair(3, Replicated("")), std::pair(1, Replicated("") + "towers: 4 ")}) {
    CAPTURE(workers, more);
    Cluster cluster(1, workers);
    cluster.StartAll(job("again", more), {"--restore=" + saved.Path("ckpt-10")});
    CHECK(LargestRelativeDifference(rest, Losses(Finish(cluster))) < 1e-6);
  }
}

TEST_CASE("without an average the sum of two towers with half the rate gives the same bits") {
  const auto job = [](const std::string& fields, const std::string& rate) {
    return JobText{.global_batch = 24,
                   .max_steps = 20,
                   .optimizer = "sgd {} learning_rate { base: " + rate + " }",
                   .more = Replicated(fields)};
  };
  CHECK(LossesOf(1, 2, job("average: false", "0.0625")) == LossesOf(1, 2, job("", "0.125")));
}

TEST_CASE("what the group cannot do ends every process with 78 and the field, within 10 s") {
  const auto ops = [](const std::string& text) { return "cross_tower_ops { " + text + " }"; };
  const auto [fields, place] = GENERATE_COPY(table<std::string, std::string>(
      {{"mode: CPU", "strategy.replicated.mode: CPU reduces the towers of one worker"},
       {"mode: NCCL", "strategy.replicated.mode: NCCL needs GPUs"},
       {ops("all_reduce { all_reduce_alg: 'hierarchical_copy' }"),
        "strategy.replicated.cross_tower_ops.all_reduce: it reduces the towers of one worker"},
       {ops("all_reduce {}"), "all_reduce.all_reduce_alg: nccl needs GPUs"},
       {ops("multi_worker_all_reduce { all_reduce_spec: 'pscpu#5' }"), "expected at most 2"},
       {ops("multi_worker_all_reduce { all_reduce_spec: 'psgpu' }"), "psgpu needs GPUs"},
       {ops("multi_worker_all_reduce { all_reduce_spec: 'pscpu:2k' }"),
        "character 9: not well formed"}}));
  CAPTURE(fields);
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = 10, .more = Replicated(fields)});
  CHECK(cluster.chief().Wait(absl::Seconds(10)) == 78);
  CHECK_THAT(cluster.Logs(), Contains(place) && Contains("Remedy: "));
}

}  // namespace
}  // namespace lockstep::test
