// One synchronous step of jobs in which each of two ps keeps a copy of the other one's shard,
// beside the same step without copies.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

struct CopiedJob {
  const char* row;
  SyntheticJob job;
  int64_t release_every;  // microseconds: a multiple of what a step without copies takes
  double target;
};

std::vector<CopiedJob> CopiedJobs() {
  SyntheticJob large;
  large.ps = 2;
  large.transport = "shared_memory: COPY";
  SyntheticJob sent = large;
  sent.transport = "shared_memory: OFF";
  const SyntheticJob small{
      .transport = "", .workers = 4, .ps = 2, .variables = 10, .elements = 256, .steps = 400};
  // At most 2.0, 1.6 and 1.5 times as long.
  return {{"copy_shm_2w", large, 100'000, 1 / 2.0},
          {"copy_grpc_2w", sent, 200'000, 1 / 1.6},
          {"copy_small_4w", small, 4'000, 1 / 1.5}};
}

Contest CopyContest(const BenchOptions& options) {
  Contest contest;
  contest.unit = "ms";
  contest.note = absl::StrFormat(
      "SGD, 2 ps; 2w: 64 MiB float32 in 16 variables, through shared memory or sockets; 4w: 10,240 "
      "bytes in 10 variables; %s",
      options.network);
  for (const CopiedJob& of : CopiedJobs()) {
    SyntheticJob copied = of.job;
    copied.copies = true;
    const std::string row = of.row;
    const std::string without = absl::StrCat(row, "_without");
    contest.sides.push_back({row, "", ReleasedStep(copied, of.release_every)});
    contest.sides.push_back(
        {without, "the same without copies", ReleasedStep(of.job, of.release_every)});
    contest.comparisons.push_back({row, row, without, of.target});
  }
  return contest;
}

}  // namespace

RowGroup CopyRows() { return AsGroup(&CopyContest); }

}  // namespace lockstep::bench
