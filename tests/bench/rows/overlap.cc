// How much of a push is over when the backward pass is. Gradients leave as they are computed;
// clipping by their common norm, here one that nothing reaches, holds them all back until the end.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"
#include "tests/bench/digits_data.h"
#include "tests/bench/interleave.h"
#include "tests/bench/local_job.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr int kOverlapWorkers = 2;
constexpr int kOverlapSteps = 60;
constexpr int kOverlapWarmUp = 10;
constexpr char kOverlapModel[] = "deploy/examples/digits/model.textproto";
constexpr size_t kOverlapModelBytes = 64 * 1024;  // at most

std::string OverlapJob(const char* clipping) {
  return absl::StrCat("model: 'model.textproto'\n", DigitsData(),
                      "batch_per_tower: 32\nmax_steps: ", kOverlapSteps,
                      "\noptimizer { sgd {} learning_rate { base: 0.01 } ", clipping,
                      " }\nlocal { ps: 1 workers: ", kOverlapWorkers, " }\n");
}

Measure RestOfPush(const std::string& model, const char* clipping) {
  return [model, clipping]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto timelines,
                              RunForTimelines({OverlapJob(clipping), model}, kOverlapWorkers));
    return PushAfterBackward(timelines, kOverlapWarmUp);
  };
}

}  // namespace

absl::StatusOr<RowResult> Overlap(const BenchOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string model, ReadFile(kOverlapModel, kOverlapModelBytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const Medians rest,
                            Interleave(options.rounds, RestOfPush(model, ""),
                                       RestOfPush(model, "clipping { global_norm: 1e30 }")));
  RowResult result;
  result.value = 100 * (1 - rest.ours / rest.theirs);
  result.unit = "%";
  result.peer = "a push that begins after the backward pass: all of it shows";
  result.peer_value = 100;
  result.target = std::nullopt;
  result.note = absl::StrFormat(
      "digits CNN, 2 workers; from the last gradient to the last verdict %.2f ms, without overlap "
      "%.2f ms; %s",
      rest.ours, rest.theirs, options.network);
  return result;
}

}  // namespace lockstep::bench
