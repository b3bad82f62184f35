// One synchronous step of a small model, whose time is that of its messages, beside a single gRPC
// call that carries as many bytes.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/built.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kVariables = 10;
constexpr int64_t kElements = 256;
constexpr int64_t kBytes = kVariables * kElements * static_cast<int64_t>(sizeof(float));
constexpr int kSmallSteps = 400;
constexpr int kCalls = 2000;
// Microseconds: little more than a step takes, so that cores and caches rest as little as those of
// the peer, which calls without a pause.
constexpr int64_t kReleaseEvery = 2'000;
constexpr double kSmallTarget = 0.2;  // a step takes at most five calls

Measure OurSmallStep(int ps) {
  const SyntheticJob job{.transport = "",
                         .workers = 4,
                         .ps = ps,
                         .variables = kVariables,
                         .elements = kElements,
                         .steps = kSmallSteps};
  return ReleasedStep(job, kReleaseEvery);
}

Contest SmallContest(const BenchOptions& options) {
  Contest contest;
  contest.unit = "ms";
  contest.note = absl::StrFormat("%d bytes float32 in %d variables, SGD, 4 workers; %s", kBytes,
                                 kVariables, options.network);
  contest.sides = {{"1ps", "", OurSmallStep(1)},
                   {"2ps", "", OurSmallStep(2)},
                   {"grpc", "one gRPC call with as many bytes each way",
                    MedianMilliseconds({BuiltProgram("tests/bench/peers/grpc_unary"),
                                        absl::StrCat(kBytes), absl::StrCat(kCalls)})}};
  contest.comparisons = {{"step_small_4w/grpc_unary", "1ps", "grpc", kSmallTarget},
                         {"step_small_4w_2ps/grpc_unary", "2ps", "grpc", kSmallTarget}};
  return contest;
}

}  // namespace

RowGroup SmallStepRows() { return AsGroup(&SmallContest); }

}  // namespace lockstep::bench
