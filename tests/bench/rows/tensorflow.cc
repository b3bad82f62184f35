// Whole steps of ours beside those of TensorFlow over its gRPC: the same bytes, the same workers, a
// gradient that costs next to nothing on both sides.
#include <filesystem>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tests/bench/contest.h"
#include "tests/bench/peer_process.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

// A way to train, as we and as they call it.
struct TensorFlowStrategy {
  const char* ours;  // strategy { ... } of the job
  const char* theirs;
  const char* script;
};

constexpr TensorFlowStrategy kSyncReplicas = {"parameter_server {}",
                                              "TensorFlow SyncReplicasOptimizer",
                                              "tests/bench/peers/tensorflow_sync.py"};
constexpr TensorFlowStrategy kMirrored = {"replicated { mode: COLLECTIVE }",
                                          "TensorFlow MultiWorkerMirroredStrategy, its ring",
                                          "tests/bench/peers/tensorflow_multiworker.py"};

struct TensorFlowOurs {
  const char* row;
  const char* transport;  // of the job
  double target;
};

// One model, which several sides of ours train.
struct TensorFlowCase {
  TensorFlowStrategy strategy;
  int workers;
  int64_t variables;
  int64_t elements;
  int our_steps;
  int their_steps;
  std::vector<TensorFlowOurs> ours;
};

const TensorFlowCase kLarge = {.strategy = kSyncReplicas,
                               .workers = 2,
                               .variables = 16,
                               .elements = 1 << 20,
                               .our_steps = 20,
                               .their_steps = 5,
                               .ours = {{"tensorflow_shm_mapped_2w", "shared_memory: MAP", 10},
                                        {"tensorflow_shm_2w", "shared_memory: COPY", 6},
                                        {"tensorflow_grpc_2w", "shared_memory: OFF", 2.5}}};
const TensorFlowCase kSmall = {.strategy = kSyncReplicas,
                               .workers = 4,
                               .variables = 8,
                               .elements = 988,
                               .our_steps = 500,
                               .their_steps = 50,
                               .ours = {{"tensorflow_small_4w", "", 20}}};
const TensorFlowCase kMultiWorker = {
    .strategy = kMirrored,
    .workers = 2,
    .variables = 16,
    .elements = 1 << 20,
    .our_steps = 20,
    .their_steps = 5,
    .ours = {{"tensorflow_multiworker_shm_2w", "shared_memory: COPY", 3},
             {"tensorflow_multiworker_grpc_2w", "shared_memory: OFF", 1.5}}};

Measure OurWholeStep(const TensorFlowCase& model, const char* transport) {
  const SyntheticJob job{.transport = transport,
                         .workers = model.workers,
                         .variables = model.variables,
                         .elements = model.elements,
                         .steps = model.our_steps,
                         .strategy = model.strategy.ours};
  return [job]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto timelines, RunSynthetic(job, /*release_every=*/0));
    return WholeStep(timelines[0], kWarmUp);
  };
}

// Starts with the first question and stays until the contest is over, stopped in between.
Measure TheirWholeStep(const BenchOptions& options, const TensorFlowCase& model) {
  const std::vector<std::string> argv = {options.tensorflow_python, model.strategy.script,
                                         absl::StrCat(model.workers), absl::StrCat(model.variables),
                                         absl::StrCat(model.elements)};
  return [argv, steps = model.their_steps,
          peer = std::shared_ptr<PeerProcess>()]() mutable -> absl::StatusOr<double> {
    if (peer == nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(peer, PeerProcess::Start(argv));
      LOCKSTEP_RETURN_IF_ERROR(peer->Read().status());
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string answer, peer->Ask(absl::StrCat(steps)));
    double seconds = 0;
    if (!absl::SimpleAtod(answer, &seconds)) {
      return absl::DataLossError(absl::StrCat(argv[1], ": expected seconds, got \"", answer, "\""));
    }
    return seconds * 1000 / steps;
  };
}

Contest TensorFlowContest(const BenchOptions& options, const TensorFlowCase& model) {
  Contest contest;
  contest.unit = "ms";
  contest.note =
      absl::StrFormat("%d variables of %d float32, SGD, %s, 1 ps, %d workers; %s", model.variables,
                      model.elements, model.strategy.ours, model.workers, options.network);
  for (const TensorFlowOurs& ours : model.ours) {
    contest.sides.push_back({ours.row, "", OurWholeStep(model, ours.transport)});
    contest.comparisons.push_back({ours.row, ours.row, "tensorflow", ours.target});
  }
  Side peer{"tensorflow", model.strategy.theirs, TheirWholeStep(options, model)};
  if (!std::filesystem::exists(options.tensorflow_python)) {
    peer.absent = "not installed. Remedy: ./lockstep bench --peers";
  }
  contest.sides.push_back(std::move(peer));
  return contest;
}

RowGroup TensorFlowGroup(const TensorFlowCase& model) {
  return AsGroup(
      [&model](const BenchOptions& options) { return TensorFlowContest(options, model); });
}

}  // namespace

RowGroup TensorFlowLargeRows() { return TensorFlowGroup(kLarge); }
RowGroup TensorFlowSmallRows() { return TensorFlowGroup(kSmall); }
RowGroup TensorFlowMultiWorkerRows() { return TensorFlowGroup(kMultiWorker); }

}  // namespace lockstep::bench
