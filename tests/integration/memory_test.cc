// The memory of a ps, and of workers, against what docs/operations.md
// promises.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/integration/process_memory.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kDense = 64 * kMebibyte;
// Of a worker whose tensors travel in messages: four of half a mebibyte, and gRPC's own buffer.
constexpr uint64_t kWindow = 6 * kMebibyte;
constexpr uint64_t kOwnBytes = 40 * kMebibyte;

struct Run {
  std::string transport;
  std::string optimizer;
  uint64_t slots;
  int workers;
  std::string quorum_policy = "WAIT";
};

JobText JobOf(const Run& run) {
  JobText job;
  job.global_batch = run.workers;
  job.max_steps = 1'000'000;
  job.optimizer = absl::StrCat(run.optimizer, " learning_rate { base: 0.01 }");
  job.data = absl::StrCat("csv { train: '", Binary("deploy/examples/iris/train.csv"),
                          "' label_column: 'species' }");
  job.model = R"(
    input_shape: [4]
    layers { name: "values" synthetic { variables: 16 elements: 1048576 } }
    layers { name: "loss" softmax_cross_entropy {} })";
  job.sync = absl::StrCat("quorum_policy: ", run.quorum_policy);
  job.more = absl::StrCat("transport { shared_memory: ", run.transport, " }");
  return job;
}

TEST_CASE("A ps has no more memory than its variables, their slots and the gradients it holds") {
  const Run run = GENERATE(
      Run{"OFF", "adam {}", 2, 2}, Run{"OFF", "sgd {}", 0, 4}, Run{"OFF", "sgd {}", 0, 4, "SHRINK"},
      Run{"COPY", "momentum { momentum: 0.9 }", 1, 2}, Run{"COPY", "sgd {}", 0, 4},
      Run{"MAP", "momentum { momentum: 0.9 }", 1, 2});
  CAPTURE(run.transport, run.optimizer, run.workers, run.quorum_policy);
  Cluster cluster(1, run.workers);
  cluster.StartAll(JobOf(run));
  bool trains = cluster.WaitForStep(4, absl::Minutes(2));
  // Until memory has been exchanged, a slow reader keeps values of its own.
  ForgetPeak(cluster.ps(0));
  trains = trains && cluster.WaitForStep(10, absl::Minutes(2));
  if (!trains) FAIL(cluster.Logs());
  const auto workers = static_cast<uint64_t>(run.workers);
  const uint64_t in_workers = run.transport == "OFF" ? 0 : workers * kDense;
  const uint64_t bound =
      (3 + run.slots) * kDense + workers * kDense + workers * kWindow + kOwnBytes;
  const ProcessMemory memory = MemoryOf(cluster.ps(0));
  // The heap keeps some of what was held before memory had been exchanged.
  CHECK(memory.peak <= (in_workers > 0 ? bound * 11 / 10 : bound));
  if (in_workers > 0) CHECK(memory.shared <= 3 * kDense + in_workers + kMebibyte);
  // It is this memory that was measured. In messages, gradients are there only while they wait.
  CHECK(memory.peak > (2 + run.slots) * kDense + in_workers);
}

TEST_CASE("A ps that keeps a copy has a shard more, and the means of both") {
  const Run run =
      GENERATE(Run{"OFF", "adam {}", 2, 2}, Run{"OFF", "sgd {}", 0, 4},
               Run{"COPY", "momentum { momentum: 0.9 }", 1, 2}, Run{"MAP", "sgd {}", 0, 4});
  CAPTURE(run.transport, run.optimizer, run.workers);
  JobText job = JobOf(run);
  absl::StrAppend(&job.sync, " ps_replicas: 1");
  Cluster cluster(2, run.workers);
  cluster.StartAll(job);
  bool trains = cluster.WaitForStep(4, absl::Minutes(2));
  for (int ps = 0; ps < 2; ++ps) ForgetPeak(cluster.ps(ps));
  trains = trains && cluster.WaitForStep(10, absl::Minutes(2));
  if (!trains) FAIL(cluster.Logs());
  const auto workers = static_cast<uint64_t>(run.workers);
  // The two shards are of one size.
  constexpr uint64_t kShard = kDense / 2;
  const bool is_shared = run.transport != "OFF";
  constexpr uint64_t kMeans = 2 * kShard;
  // Those of the copy's shard are there only where they lie in the workers' memory. With the values
  // of the other ps's copy, which it shows to this one.
  const uint64_t in_others = is_shared ? 2 * workers * kShard + 3 * kShard : 0;
  const uint64_t bound = (3 + run.slots) * 2 * kShard + kMeans + (workers + 1) * kWindow +
                         kOwnBytes + (is_shared ? in_others : workers * kShard);
  for (int ps = 0; ps < 2; ++ps) {
    CAPTURE(ps);
    const ProcessMemory memory = MemoryOf(cluster.ps(ps));
    CHECK(memory.peak <= (is_shared ? bound * 11 / 10 : bound));
    if (is_shared) CHECK(memory.shared <= 6 * kShard + kMeans + in_others + 2 * kMebibyte);
    CHECK(memory.peak > (2 + run.slots) * 2 * kShard + kMeans + in_others);
  }
}

TEST_CASE("A ps has a table once, with the slots, however many steps change it") {
  constexpr uint64_t kTable = 64 * kMebibyte;
  const std::string transport = GENERATE("OFF", "COPY");
  CAPTURE(transport);
  const TemporaryFolder folder;
  std::string examples;
  for (int i = 0; i < 500; ++i) {
    absl::StrAppend(&examples, i * 511, ",", i * 7, ",", 262143 - i, ",", i % 2, "\n");
  }
  folder.Write("train.csv", examples);
  JobText job;
  job.global_batch = 2;
  job.max_steps = 1'000'000;
  job.optimizer = "adagrad {} learning_rate { base: 0.01 }";
  job.data = absl::StrCat("csv { train: '", folder.Path("train.csv"),
                          "' label_column: '3' no_header: true }");
  job.model = R"(
    input_shape: [3]
    layers { name: "table" synthetic { elements: 64 rows: 262144 } }
    layers { name: "loss" softmax_cross_entropy {} })";
  job.more = absl::StrCat("transport { shared_memory: ", transport, " }");
  Cluster cluster(1, 2);
  cluster.StartAll(job);
  const bool trains = cluster.WaitForStep(50, absl::Minutes(1));
  if (!trains) FAIL(cluster.Logs());
  const uint64_t peak = MemoryOf(cluster.ps(0)).peak;
  CHECK(peak <= 2 * kTable + 2 * kWindow + kOwnBytes);
  CHECK(peak > 2 * kTable);
}

struct Replicas {
  std::string transport;
  std::string optimizer;
  uint64_t slots;
  int workers;
  int towers;
};

TEST_CASE("A worker of a replicated job has what its towers keep, and what its peers show it") {
  const Replicas run =
      GENERATE(Replicas{"OFF", "sgd {}", 0, 2, 1}, Replicas{"OFF", "adam {}", 2, 2, 1},
               Replicas{"COPY", "adam {}", 2, 2, 1}, Replicas{"COPY", "sgd {}", 0, 3, 1},
               Replicas{"COPY", "momentum { momentum: 0.9 }", 1, 1, 2});
  CAPTURE(run.transport, run.optimizer, run.workers, run.towers);
  JobText job = JobOf({run.transport, run.optimizer, run.slots, run.workers});
  job.global_batch = run.workers * run.towers;
  absl::StrAppend(&job.more, " strategy { replicated {} } towers: ", run.towers);
  Cluster cluster(1, run.workers);
  cluster.StartAll(job);
  bool trains = cluster.WaitForStep(4, absl::Minutes(2));
  ForgetPeak(cluster.worker(0));
  trains = trains && cluster.WaitForStep(10, absl::Minutes(2));
  if (!trains) FAIL(cluster.Logs());
  const auto workers = static_cast<uint64_t>(run.workers);
  const auto towers = static_cast<uint64_t>(run.towers);
  const uint64_t own = towers * (4 + run.slots) * kDense;
  const uint64_t others = (workers - 1) * towers * kDense;
  const uint64_t peak = MemoryOf(cluster.worker(0)).peak;
  const uint64_t bound = own + others + kDense + workers * kWindow + kOwnBytes;
  // The heap has gaps between messages.
  CHECK(peak <= (run.transport == "OFF" ? bound * 11 / 10 : bound));
  // What is certain: a worker that has less refuses the job.
  CHECK(peak > own);
}

TEST_CASE("A worker takes at least the memory that it refuses a job without") {
  const std::string transport = GENERATE("OFF", "COPY");
  const bool is_asynchronous = GENERATE(false, true);
  CAPTURE(transport, is_asynchronous);
  const int towers = is_asynchronous ? 2 : 1;
  JobText job = JobOf({transport, "sgd {}", 0, 1});
  job.global_batch = towers;
  if (is_asynchronous) job.sync = "asynchronous {}";
  absl::StrAppend(&job.more, " towers: ", towers);
  Cluster cluster(1, 1);
  cluster.StartAll(job);
  if (!cluster.WaitForStep(4, absl::Minutes(2))) FAIL(cluster.Logs());
  // Values and gradients, which each tower of an asynchronous job has for itself.
  CHECK(MemoryOf(cluster.worker(0)).peak > static_cast<uint64_t>(towers) * 2 * kDense);
}

}  // namespace
}  // namespace lockstep::test
