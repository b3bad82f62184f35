// Replicated jobs in real processes train as parameter servers do: over 200 steps, with every
// optimizer, over messages and shared memory. Every reduction with every optimizer and group is in
// tests/unit/worker/strategy/replicated/equal_training_test.cc, without processes.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/integration/training_run.h"
#include "tests/unit/worker/strategy/replicated/reductions.h"

namespace lockstep::test {
namespace {

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
Trained Train(const Topology& group, JobText job, const std::string& more) {
  Cluster cluster(2, group.workers);
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  job.checkpoint = absl::StrCat("folder: '", checkpoints, "' every_steps: 70");
  job.evaluation = "every_steps: 90";
  absl::StrAppend(&job.more, " ", more, " towers: ", group.towers);
  cluster.StartAll(job);
  const nlohmann::json summary = Finish(cluster);
  return {Losses(summary),
          TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", job.max_steps)))};
}

Trained Train(const Topology& group, const std::string& optimizer, const std::string& more) {
  return Train(group, {.global_batch = 96, .max_steps = kSteps, .optimizer = optimizer}, more);
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

// Two participants in all.
void CheckBits(const Topology& group, const std::string& reduction, size_t optimizer,
               const std::string& memory) {
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

void CheckLosses(const Topology& group, const std::string& reduction, size_t optimizer,
                 const std::string& memory) {
  CAPTURE(group.workers, group.towers, reduction, kOptimizers[optimizer], memory);
  const Trained replicated =
      Train(group, kOptimizers[optimizer],
            Replicated(reduction) + "transport { shared_memory: " + memory + " }");
  CHECK(LargestRelativeDifference(Server(optimizer).losses, replicated.losses) < 1e-6);
}

constexpr Topology kPairs[] = {{2, 1}, {1, 2}};
constexpr Topology kLargerGroups[] = {{3, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 2},
                                      {1, 3}, {1, 4}, {1, 6}, {1, 8}};

TEST_CASE("with two participants every reduction gives the bits of a parameter server") {
  size_t number = 0;
  for (const Topology& group : kPairs) {
    for (const std::string& reduction : ReductionsFor(group)) {
      // Each with one optimizer and one transport in turn.
      CheckBits(group, reduction, number % 3, kSharedMemory[number / 3 % 3]);
      ++number;
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
  size_t number = 0;
  for (const Topology& group : kLargerGroups) {
    const std::vector<std::string> reductions = ReductionsFor(group);
    CheckLosses(group, reductions[(4 + 5 * number) % reductions.size()], number % 3, "COPY");
    ++number;
  }
  CheckLosses({1, 8}, "mode: HIERARCHICAL", 1, "COPY");
}

// Not part of a test run, for its length (CONTRIBUTING.md): all of what the cases above take
// samples of.
TEST_CASE("every reduction, optimizer, group and transport trains alike", "[.matrix]") {
  for (size_t optimizer = 0; optimizer < 3; ++optimizer) {
    for (const bool is_pair : {true, false}) {
      for (const Topology& group :
           is_pair ? absl::MakeConstSpan(kPairs) : absl::MakeConstSpan(kLargerGroups)) {
        for (const std::string& reduction : ReductionsFor(group)) {
          for (const std::string memory : {"MAP", "OFF"}) {
            // Towers of one worker have no peers to share memory with.
            if (group.workers == 1 && memory == "OFF") continue;
            is_pair ? CheckBits(group, reduction, optimizer, memory)
                    : CheckLosses(group, reduction, optimizer, memory);
          }
        }
      }
    }
  }
}

constexpr char kNormalized[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "hidden" dense { units: 32 } }
  layers { name: "norm" batch_norm { momentum: 0.9 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

TEST_CASE("batch normalization trains alike, with statistics of the first tower") {
  const JobText job = {.global_batch = 96, .max_steps = 60, .model = kNormalized};
  Trained server = Train({2, 1}, job, "");
  CHECK(server.losses.back() < server.losses.front() / 2);
  for (const Topology& group : kPairs) {
    CAPTURE(group.workers);
    Trained replicated = Train(group, job, Replicated(""));
    CHECK(replicated.losses == server.losses);
    for (const char* statistic : {"norm/moving_mean", "norm/moving_variance"}) {
      // One tower's, where a ps has the mean over both.
      CHECK(replicated.tensors.at(statistic) != server.tensors.at(statistic));
      replicated.tensors[statistic] = server.tensors.at(statistic);
    }
    CHECK(replicated.tensors == server.tensors);
  }
}

TEST_CASE("an LSTM trains alike") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abacadbcbdef gab"[i % 16];
  const JobText job = {.global_batch = 16,
                       .max_steps = 60,
                       .data = absl::StrCat("text { path: '", folder.Write("text", text),
                                            "' length: 16 held_out: 0.2 }"),
                       .model = R"(
        input_shape: 16
        layers { name: "columns" embedding { rows: 9 dim: 8 combiner: SEQUENCE } frozen: true }
        layers { name: "lstm" lstm { units: 32 return_sequences: true } }
        layers { name: "scores" dense { units: 9 } }
        layers { name: "loss" softmax_cross_entropy {} })"};
  const Trained server = Train({2, 1}, job, "");
  CHECK(server.losses.back() < server.losses.front() / 2);
  for (const Topology& group : kPairs) {
    CAPTURE(group.workers);
    const Trained replicated = Train(group, job, Replicated(""));
    CHECK(replicated.losses == server.losses);
    CHECK(replicated.tensors == server.tensors);
  }
}

}  // namespace
}  // namespace lockstep::test
