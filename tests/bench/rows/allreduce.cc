// One step of workers that reduce their gradients among themselves and apply SGD each, on one
// machine, from the moment when their gradients are released until the slowest has all variables.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/built.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr int kReductionSteps = 9;
constexpr int64_t kReducedMebibytes = 64;

// What one run of tests/bench/reduction reduces.
struct Reduction {
  const char* name;  // of the row: allreduce_<name>_2w
  const char* spec;
  const char* transport;
  int variables = 16;
  int64_t floats = int64_t{1} << 20;  // of each
  int num_packs = 0;
};

constexpr Reduction kReductions[] = {
    {"xring_shm", "xring", "shm"},
    {"xring_grpc", "xring", "grpc"},
    {"pscpu_shm", "pscpu", "shm"},
    {"rechd_shm", "rechd", "shm"},
};
// Small variables, by themselves and as one pack.
constexpr Reduction kUnpacked = {"unpacked_grpc", "xring", "grpc", 160, 2048, 0};
constexpr Reduction kPacked = {"packed_grpc", "xring", "grpc", 160, 2048, 1};

struct GlooRival {
  const char* reduction;
  const char* peer;
  int workers;
  double target;
};

constexpr GlooRival kGlooRivals[] = {
    {"xring_shm", "gloo", 2, 2},   {"xring_shm", "gloo", 4, 1.5},
    {"xring_grpc", "gloo", 2, 1},  {"xring_grpc", "gloo", 4, 0.85},
    {"pscpu_shm", "gloo", 4, 2.2}, {"rechd_shm", "gloo_halving_doubling", 4, 1.5},
};

// Microseconds: about twice what a step takes, its gradient's writing included.
int64_t ReductionPeriod(int workers) { return 50'000 * workers; }

RunReleased RunReduction(const Reduction& reduction, int workers) {
  return [reduction, workers](int64_t release_every) {
    return ReadMilliseconds({BuiltProgram("tests/bench/reduction/reduction_step"),
                             absl::StrCat(workers), absl::StrCat(kReductionSteps),
                             absl::StrCat(release_every), reduction.spec, reduction.transport,
                             absl::StrCat(reduction.variables), absl::StrCat(reduction.floats),
                             absl::StrCat(reduction.num_packs)});
  };
}

Side ReductionSide(const Reduction& reduction, const std::string& title, int workers) {
  return {
      reduction.name, title,
      MedianReleased(ReductionPeriod(workers), kReductionSteps, RunReduction(reduction, workers))};
}

Side GlooSide(const BenchOptions& options, const std::string& name, const std::string& title,
              const std::vector<std::string>& algorithm, int workers) {
  const std::string program = absl::StrCat(options.peers_dir, "/gloo_step");
  const auto run = [program, algorithm, workers](int64_t release_every) {
    std::vector<std::string> argv = {program, absl::StrCat(workers),
                                     absl::StrCat(kReducedMebibytes), absl::StrCat(kReductionSteps),
                                     absl::StrCat(release_every)};
    argv.insert(argv.end(), algorithm.begin(), algorithm.end());
    return ReadMilliseconds(argv);
  };
  Side side{name, title, MedianReleased(ReductionPeriod(workers), kReductionSteps, run)};
  if (!std::filesystem::exists(program)) {
    side.absent = "not installed. Remedy: ./lockstep bench --peers";
  }
  return side;
}

Contest AllReduceContest(const BenchOptions& options, int workers) {
  Contest contest;
  contest.unit = "ms";
  contest.note = absl::StrFormat(
      "%d MiB float32 in 16 variables, SGD by each of %d workers, gradients released every %d ms; "
      "%s",
      kReducedMebibytes, workers, ReductionPeriod(workers) / 1000, options.network);
  for (const Reduction& reduction : kReductions) {
    contest.sides.push_back(
        ReductionSide(reduction, absl::StrCat("Lockstep, ", reduction.spec), workers));
  }
  contest.sides.push_back(
      GlooSide(options, "gloo", "gloo all-reduce (ring_chunked) + SGD", {}, workers));
  contest.sides.push_back(GlooSide(options, "gloo_halving_doubling",
                                   "gloo all-reduce (halving_doubling) + SGD", {"halving_doubling"},
                                   workers));
  for (const GlooRival& rival : kGlooRivals) {
    if (rival.workers != workers) continue;
    contest.comparisons.push_back(
        {absl::StrCat("allreduce_", rival.reduction, "_", workers, "w/", rival.peer),
         rival.reduction, rival.peer, rival.target});
  }
  return contest;
}

Contest PackingContest(const BenchOptions& options) {
  constexpr int kWorkers = 4;
  Contest contest;
  contest.unit = "ms";
  contest.note =
      absl::StrCat("160 variables of 8 KiB, SGD by each of 4 workers; ", options.network);
  contest.sides.push_back(ReductionSide(kPacked, "one pack", kWorkers));
  contest.sides.push_back(ReductionSide(kUnpacked, "the same unpacked", kWorkers));
  contest.comparisons.push_back(
      {"allreduce_packed_grpc_4w/unpacked", kPacked.name, kUnpacked.name, 2});
  return contest;
}

}  // namespace

RowGroup AllReduceRows(int workers) {
  return AsGroup(
      [workers](const BenchOptions& options) { return AllReduceContest(options, workers); });
}

RowGroup PackedAllReduceRows() { return AsGroup(PackingContest); }

}  // namespace lockstep::bench
