// Three replicas of which one is three times slower, two gradients per step: what the policy of the
// tokens does to the rate of the steps, and how many gradients it wastes. Replicas sleep instead of
// computing, so that the number of cores does not matter.
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tests/bench/interleave.h"
#include "tests/bench/local_job.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr int kSteps = 100;
constexpr char kSleeps[] = "--worker_sleeps=10ms,10ms,30ms";

constexpr char kModel[] = R"(
input_shape: [8, 8, 1]
layers { name: "flatten" flatten {} }
layers { name: "scores" dense { units: 10 } }
layers { name: "loss" softmax_cross_entropy {} }
)";

std::string JobText(const char* policy) {
  const std::string digits =
      absl::StrCat(std::filesystem::current_path().string(), "/deploy/data/digits/");
  return absl::StrCat(
      "model: 'model.textproto'\ndata { idx { train_images: '", digits,
      "train-images.idx.gz' train_labels: '", digits,
      "train-labels.idx.gz' } scale: 0.0625 }\nbatch_per_tower: 8\nmax_steps: ", kSteps,
      "\noptimizer { sgd {} learning_rate { base: 0.1 } }\n",
      "sync { replicas_to_aggregate: 2 token_policy: ", policy, " }\nlocal { ps: 1 workers: 3 }\n");
}

// Steps per second under one policy; adds the share of gradients that were dropped to `wasted`.
Measure RateUnder(const char* policy, std::vector<double>* wasted) {
  return [policy, wasted]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const deploy::Summary summary,
                              RunLocalJob(JobText(policy), kModel, {kSleeps}));
    wasted->push_back(static_cast<double>(summary.stale) /
                      static_cast<double>(summary.accepted + summary.stale));
    return static_cast<double>(summary.steps) / summary.train_seconds;
  };
}

}  // namespace

absl::StatusOr<RowResult> StragglerPerReplica(const BenchOptions& options) {
  std::vector<double> wasted_per_replica;
  std::vector<double> wasted_fifo;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Medians medians,
      Interleave(options.rounds, RateUnder("PER_REPLICA", &wasted_per_replica),
                 RateUnder("FIFO", &wasted_fifo)));
  RowResult result;
  result.value = medians.ours;
  result.unit = "steps/s";
  result.peer = "token_policy FIFO (TensorFlow's)";
  result.peer_value = medians.theirs;
  result.note = absl::StrFormat(
      "3 replicas, 2 to aggregate, steps of 10, 10 and 30 ms; gradients wasted: %.0f %% against "
      "%.0f %% under FIFO",
      100 * Median(wasted_per_replica), 100 * Median(wasted_fifo));
  return result;
}

}  // namespace lockstep::bench
