// Replicated training in real processes: the bits of a parameter server, by every reduction.
#include <signal.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr int kSteps = 12;

std::string Replicated(const std::string& fields) {
  return absl::StrCat("strategy { replicated { ", fields, " } } ");
}

std::string Spec(const std::string& spec) {
  return Replicated("cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: '" + spec +
                    "' } }");
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;  // CRC by name, of the last checkpoint
};

Trained Train(int ps, int workers, const std::string& optimizer, const std::string& more) {
  Cluster cluster(ps, workers);
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  cluster.StartAll({.global_batch = 24,
                    .max_steps = kSteps,
                    .optimizer = optimizer,
                    .checkpoint = absl::StrCat("folder: '", checkpoints, "' every_steps: 5"),
                    .evaluation = "every_steps: 6",
                    .more = more});
  const nlohmann::json summary = Finish(cluster);
  Trained trained{Losses(summary), {}};
  const nlohmann::json manifest = nlohmann::json::parse(
      cluster.folder().Read(absl::StrCat("checkpoints/ckpt-", kSteps, "/manifest.json")));
  for (const nlohmann::json& shard : manifest.at("shards")) {
    for (const nlohmann::json& tensor : shard.at("tensors")) {
      trained.tensors[tensor.at("name")] = tensor.at("crc32c").dump();
    }
  }
  return trained;
}

constexpr char kAdam[] = "adam {} learning_rate { base: 0.01 }";

TEST_CASE("with two participants every reduction gives the bits of a parameter server") {
  const Trained workers = Train(2, 2, kAdam, "");
  const Trained towers = Train(2, 1, kAdam, "towers: 2");
  REQUIRE(workers.losses.size() == kSteps);
  REQUIRE(workers.tensors.size() > 12);  // values, two slots each, two powers
  for (const std::string& strategy :
       {Replicated(""), Replicated("cross_tower_ops { collective_all_reduce {} }"), Spec("xring"),
        Spec("rechd"), Spec("pscpu:2k:pscpu#2:64k:xring"), Spec("pscpu/pscpu"),
        Replicated("cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: 'xring' "
                   "packing { num_packs: 3 } } }"),
        Replicated("cross_tower_ops { reduction_to_one_device {} }")}) {
    CAPTURE(strategy);
    const Trained replicated = Train(2, 2, kAdam, strategy);
    CHECK(replicated.losses == workers.losses);
    CHECK(replicated.tensors == workers.tensors);
  }
  for (const std::string& strategy :
       {Replicated("mode: CPU"), Replicated("mode: COLLECTIVE"),
        Replicated("cross_tower_ops { all_reduce { all_reduce_alg: 'hierarchical_copy' } }")}) {
    CAPTURE(strategy);
    const Trained replicated = Train(2, 1, kAdam, strategy + "towers: 2");
    CHECK(replicated.losses == towers.losses);
    CHECK(replicated.tensors == towers.tensors);
  }
}

TEST_CASE("messages and shared memory, and every optimizer, give the same bits") {
  for (const std::string optimizer :
       {"sgd {} learning_rate { base: 0.1 }",
        "momentum { momentum: 0.9 } learning_rate { base: 0.05 }",
        "adam {} learning_rate { base: 0.01 } variable_averages { decay: 0.9 }"}) {
    CAPTURE(optimizer);
    const Trained server = Train(1, 2, optimizer, "");
    for (const std::string transport : {"COPY", "OFF"}) {
      CAPTURE(transport);
      const Trained replicated =
          Train(1, 2, optimizer, Spec("xring") + "transport { shared_memory: " + transport + " }");
      CHECK(replicated.losses == server.losses);
      CHECK(replicated.tensors == server.tensors);
    }
  }
}

TEST_CASE("more participants agree with a parameter server to rounding") {
  const int workers = GENERATE(3, 2);
  const int towers = workers == 3 ? 2 : 4;
  CAPTURE(workers, towers);
  const std::string more = absl::StrCat("towers: ", towers, " ");
  const Trained server = Train(2, workers, kAdam, more);
  for (const std::string& strategy : {Spec("xring#2"), Spec("pscpu/pscpu#2"), Spec("rechd")}) {
    CAPTURE(strategy);
    const Trained replicated = Train(2, workers, kAdam, more + strategy);
    CHECK(LargestRelativeDifference(server.losses, replicated.losses) < 1e-6);
  }
}

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

TEST_CASE("a worker that is lost takes the job with it, and --resume goes on") {
  Cluster cluster(1, 2);
  const std::string folder = cluster.folder().Path("checkpoints");
  const JobText job{.global_batch = 24,
                    .max_steps = 1'000'000,
                    .checkpoint = "folder: '" + folder + "' every_steps: 20",
                    .more = Replicated("")};
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(40, absl::Seconds(60)));
  cluster.worker(1).Signal(SIGKILL);
  CHECK(cluster.chief().Wait(absl::Seconds(30)) == 138);
  CHECK_THAT(cluster.Logs(), Contains("worker 1") && Contains("is lost"));
}

}  // namespace
}  // namespace lockstep::test
