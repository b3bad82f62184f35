// What slow replicas cost. Replicas sleep instead of computing, so that the number of cores does
// not matter.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tests/bench/contest.h"
#include "tests/bench/digits_data.h"
#include "tests/bench/local_job.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr int kSteps = 100;

constexpr char kModel[] = R"(
input_shape: [8, 8, 1]
layers { name: "flatten" flatten {} }
layers { name: "scores" dense { units: 10 } }
layers { name: "loss" softmax_cross_entropy {} }
)";

struct Replicas {
  int count = 4;
  int needed = 4;  // replicas_to_aggregate
  const char* policy = "PER_REPLICA";
  std::vector<std::string> flags;  // of `lockstep up`: who sleeps
};

std::string JobText(const Replicas& replicas) {
  return absl::StrCat(
      "model: 'model.textproto'\n", DigitsData(), "batch_per_tower: 8\nmax_steps: ", kSteps,
      "\noptimizer { sgd {} learning_rate { base: 0.1 } }\nsync { replicas_to_aggregate: ",
      replicas.needed, " token_policy: ", replicas.policy,
      " }\nlocal { ps: 1 workers: ", replicas.count, " }\n");
}

// Steps per second. Adds the share of gradients that were dropped to `wasted`, if there is one.
Measure RateOf(const Replicas& replicas, std::vector<double>* wasted = nullptr) {
  return [replicas, wasted]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const deploy::Summary summary,
                              RunLocalJob({JobText(replicas), kModel}, replicas.flags));
    if (wasted != nullptr) {
      wasted->push_back(static_cast<double>(summary.stale) /
                        static_cast<double>(summary.accepted + summary.stale));
    }
    return static_cast<double>(summary.steps) / summary.train_seconds;
  };
}

Contest StragglerContest(const BenchOptions&) {
  const std::vector<std::string> even = {"--worker_sleeps=10ms,10ms,10ms,10ms"};
  std::vector<std::string> one_stalls = even;
  one_stalls.push_back("--worker_stalls=0,0,0,50ms");
  Contest contest;
  contest.unit = "steps/s";
  contest.higher_is_better = true;
  contest.note =
      "4 replicas, 3 to aggregate, steps of 10 ms; one replica takes 50 ms more in one step of "
      "four";
  contest.sides = {
      {"3of4", "", RateOf({.needed = 3, .flags = one_stalls})},
      {"even", "the same without the slow replica's sleep", RateOf({.needed = 3, .flags = even})},
      {"4of4", "all 4 to aggregate", RateOf({.needed = 4, .flags = one_stalls})},
      {"fifo", "token_policy FIFO (TensorFlow's)",
       RateOf({.needed = 3, .policy = "FIFO", .flags = one_stalls})}};
  contest.comparisons = {{"straggler/without_sleeper", "3of4", "even", 0.9},
                         {"straggler/all_needed", "3of4", "4of4", 1},
                         {"straggler/fifo", "3of4", "fifo", 1}};
  return contest;
}

}  // namespace

RowGroup StragglerRows() { return AsGroup(&StragglerContest); }

// One of three replicas is three times slower, two gradients per step: what the policy of the
// tokens does to the rate of the steps, and how many gradients it wastes.
absl::StatusOr<RowResult> StragglerPerReplica(const BenchOptions& options) {
  Replicas replicas = {.count = 3, .needed = 2, .flags = {"--worker_sleeps=10ms,10ms,30ms"}};
  std::vector<double> wasted_per_replica;
  std::vector<double> wasted_fifo;
  const Measure ours = RateOf(replicas, &wasted_per_replica);
  replicas.policy = "FIFO";
  LOCKSTEP_ASSIGN_OR_RETURN(const Medians medians,
                            Interleave(options.rounds, ours, RateOf(replicas, &wasted_fifo)));
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
