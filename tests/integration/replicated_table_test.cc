// A table under replicated, in real processes: rows are gathered, and training is that of a
// parameter server.
#include <signal.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/table_job.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr char kWarning[] = "Efficient allreduce is not supported for IndexedSlices.";

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;  // CRC by name, of the last checkpoint
  nlohmann::json evaluation;
};

Trained Train(int ps, int workers, const TableJob& job, const JobText& text) {
  Cluster cluster(ps, workers);
  cluster.StartAll(text, {"--fresh"});
  const nlohmann::json summary = Finish(cluster);
  return {Losses(summary), TensorsOf(job.Saved(text.max_steps)), summary["evaluations"].back()};
}

JobText Text(const TableJob& job, const std::string& optimizer, const std::string& more) {
  JobText text = job.Text(more, 60);
  text.optimizer = optimizer;
  // Where there is an average it is evaluated.
  const bool averages = optimizer.find("variable_averages") != std::string::npos;
  text.evaluation = absl::StrCat("every_steps: 20 batch: 16 use_averages: ", averages);
  return text;
}

std::string Replicated(const std::string& fields, int towers) {
  return absl::StrCat("strategy { replicated { ", fields, " } } towers: ", towers, " ");
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A parameter server divides a row by the number of workers that read it. The towers of one worker
// divide it by their number, as replicated does.
TEST_CASE("with two participants a table gets the bits of a worker with two towers") {
  const auto [optimizer, fields, transport] = GENERATE(table<std::string, std::string, std::string>(
      {{"sgd {} learning_rate { base: 0.5 }", "", "COPY"},
       {"adagrad {} learning_rate { base: 0.1 } clipping { norm: 0.05 }", "mode: COLLECTIVE",
        "OFF"},
       {"momentum { momentum: 0.9 } learning_rate { base: 0.1 }",
        "cross_tower_ops { multi_worker_all_reduce { packing { num_packs: 2 } } }", "MAP"},
       {"adam {} learning_rate { base: 0.02 } clipping { global_norm: 1 } "
        "variable_averages { decay: 0.9 }",
        "cross_tower_ops { reduction_to_one_device {} }", "COPY"},
       {"adam { lazy: true } learning_rate { base: 0.02 }", "", "OFF"}}));
  CAPTURE(optimizer, fields, transport);
  const TableJob job;
  const std::string parts = "max_part_bytes: 150 ";
  const Trained server = Train(1, 1, job, Text(job, optimizer, parts + "towers: 2"));
  REQUIRE(server.losses.size() == 60);
  CHECK(server.losses.back() < server.losses.front());
  for (const auto& [workers, towers] : {std::pair{2, 1}, {1, 2}}) {
    if (workers == 1 && fields.find("multi_worker") != std::string::npos) continue;
    CAPTURE(workers, towers);
    const std::string more = absl::StrCat(Replicated(fields, towers), parts,
                                          "transport { shared_memory: ", transport, " }");
    const Trained replicated = Train(2, workers, job, Text(job, optimizer, more));
    CHECK(replicated.losses == server.losses);
    CHECK(replicated.tensors == server.tensors);
    CHECK(replicated.evaluation == server.evaluation);
  }
}

TEST_CASE("with more participants a table agrees with the towers of one worker to rounding") {
  const std::string optimizer = "adam {} learning_rate { base: 0.005 }";
  const TableJob job;
  const Trained server = Train(1, 1, job, Text(job, optimizer, "towers: 4"));
  for (const auto& [workers, towers] : {std::pair{2, 2}, {4, 1}, {3, 1}, {1, 3}}) {
    CAPTURE(workers, towers);
    const Trained replicated = Train(1, workers, job, Text(job, optimizer, Replicated("", towers)));
    CHECK(LargestRelativeDifference(server.losses, replicated.losses) < 1e-6);
  }
}

TEST_CASE("every worker warns once that rows are gathered, and the lost one is replaced") {
  const TableJob job;
  JobText text = job.Text(Replicated("", 2), 1200);
  text.checkpoint = "";
  text.evaluation = "";
  const auto losses = [&text](bool is_disturbed) {
    Cluster cluster(1, 2);
    cluster.StartAll(text, {"--lease=2"});
    if (is_disturbed) {
      for (const int victim : {1, 0}) {
        REQUIRE(cluster.WaitForStep(victim == 1 ? 200 : 600, absl::Seconds(60)));
        cluster.worker(victim).Signal(SIGKILL);
        REQUIRE(cluster.worker(victim).Wait(absl::Seconds(60)) == 137);
        cluster.StartWorker(victim);
      }
    }
    const nlohmann::json summary = Finish(cluster);
    CHECK(Count(cluster.Logs(), kWarning) == 2);
    return Losses(summary);
  };
  const std::vector<double> calm = losses(false);
  REQUIRE(calm.size() == 1200);
  CHECK(losses(true) == calm);
}

TEST_CASE("collective_all_reduce refuses a table at the start") {
  const TableJob job;
  Cluster cluster(1, 2);
  cluster.StartAll(job.Text(Replicated("cross_tower_ops { collective_all_reduce {} }", 1)));
  CHECK(cluster.chief().Wait(absl::Seconds(30)) == 78);
  CHECK_THAT(cluster.Logs(), Contains("strategy.replicated.cross_tower_ops.collective_all_reduce"));
  CHECK_THAT(cluster.Logs(), Contains("IndexedSlices is not supported for Collective All-Reduce"));
}

}  // namespace
}  // namespace lockstep::test
