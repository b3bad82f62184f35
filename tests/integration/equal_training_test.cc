// Replicated jobs in real processes train as parameter servers do: over 200 steps, with every
// optimizer, over messages and shared memory. Every reduction with every optimizer and group is in
// tests/unit/worker/strategy/replicated/equal_training_test.cc, without processes.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"
#include "tests/unit/worker/strategy/replicated/reductions.h"

namespace lockstep::test {
namespace {

using worker::Topology;
using worker::test::ReductionsFor;

constexpr int kSteps = 200;

constexpr const char* kOptimizers[] = {
    "sgd {} learning_rate { base: 0.1 }", "momentum { momentum: 0.9 } learning_rate { base: 0.02 }",
    "adam {} learning_rate { base: 0.002 } variable_averages { decay: 0.9 }"};
constexpr const char* kSharedMemory[] = {"COPY", "MAP", "OFF"};

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;  // CRC by name, of the last checkpoint
};

// Versions that are evaluated or saved on the way leave the training as it is.
Trained Train(const Topology& group, const std::string& optimizer, const std::string& more) {
  Cluster cluster(2, group.workers);
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  cluster.StartAll({.global_batch = 96,
                    .max_steps = kSteps,
                    .optimizer = optimizer,
                    .checkpoint = absl::StrCat("folder: '", checkpoints, "' every_steps: 70"),
                    .evaluation = "every_steps: 90",
                    .more = absl::StrCat(more, " towers: ", group.towers)});
  const nlohmann::json summary = Finish(cluster);
  return {Losses(summary),
          TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps)))};
}

std::string Replicated(const std::string& fields) {
  return absl::StrCat("strategy { replicated { ", fields, " } } ");
}

// The server's runs, by optimizer.
const Trained& Server(size_t optimizer) {
  static std::map<size_t, Trained> servers;
  const auto [server, is_new] = servers.try_emplace(optimizer);
  if (is_new) server->second = Train({2, 1}, kOptimizers[optimizer], "");
  return server->second;
}

TEST_CASE("with two participants every reduction gives the bits of a parameter server") {
  size_t number = 0;
  for (const Topology& group : {Topology{2, 1}, Topology{1, 2}}) {
    for (const std::string& reduction : ReductionsFor(group)) {
      // Each with one optimizer and one transport in turn.
      const size_t optimizer = number % 3;
      const std::string memory = kSharedMemory[number / 3 % 3];
      ++number;
      CAPTURE(group.workers, group.towers, reduction, kOptimizers[optimizer], memory);
      const Trained& server = Server(optimizer);
      REQUIRE(server.losses.size() == kSteps);
      CHECK(server.losses.back() < server.losses.front() / 2);
      const Trained replicated =
          Train(group, kOptimizers[optimizer],
                Replicated(reduction) + "transport { shared_memory: " + memory + " }");
      CHECK(replicated.losses == server.losses);
      CHECK(replicated.tensors == server.tensors);
    }
  }
}

TEST_CASE("merging each variable on one of the towers gives the bits of merging on the host") {
  constexpr size_t kAdam = 2;
  const Trained merged =
      Train({1, 2}, kOptimizers[kAdam], "strategy { parameter_server { ps_device: GPU } }");
  CHECK(merged.losses == Server(kAdam).losses);
  CHECK(merged.tensors == Server(kAdam).tensors);
}

TEST_CASE("more participants agree with a parameter server to rounding in every step") {
  constexpr Topology kGroups[] = {{3, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 2},
                                  {1, 3}, {1, 4}, {1, 6}, {1, 8}};
  size_t number = 0;
  for (const Topology& group : kGroups) {
    const std::vector<std::string> reductions = ReductionsFor(group);
    const std::string& reduction = reductions[(4 + 5 * number) % reductions.size()];
    const size_t optimizer = number++ % 3;
    CAPTURE(group.workers, group.towers, reduction, kOptimizers[optimizer]);
    const Trained replicated = Train(group, kOptimizers[optimizer], Replicated(reduction));
    CHECK(LargestRelativeDifference(Server(optimizer).losses, replicated.losses) < 1e-6);
  }
}

}  // namespace
}  // namespace lockstep::test
