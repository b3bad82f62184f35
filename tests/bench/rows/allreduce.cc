// One step of workers that reduce their gradients among themselves and apply SGD each, on one
// machine, from the moment when their gradients are released until the slowest has all variables.
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/built.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

constexpr int kReductionSteps = 9;
constexpr int64_t kReducedMebibytes = 64;

// A job of ours.
struct Reduction {
  const char* name;  // of the row: allreduce_<name>_2w
  const char* spec;
  const char* packing;  // packing { ... }
  const char* transport;
  int64_t variables = 16;
  int64_t elements = int64_t{1} << 20;  // of each, float32
};

constexpr char kShm[] = "shared_memory: COPY";
constexpr char kGrpc[] = "shared_memory: OFF";

constexpr Reduction kReductions[] = {
    {"xring_shm", "xring", "", kShm},
    {"xring_grpc", "xring", "", kGrpc},
    {"pscpu_shm", "pscpu", "", kShm},
    {"rechd_shm", "rechd", "", kShm},
};
// Small variables, by themselves and as one pack.
constexpr Reduction kUnpacked = {"unpacked_grpc", "xring", "", kGrpc, 160, 2048};
constexpr Reduction kPacked = {"packed_grpc", "xring", "num_packs: 1", kGrpc, 160, 2048};

struct ReductionRival {
  const char* reduction;
  const char* peer;
  int workers;
  std::optional<double> target;
};

constexpr ReductionRival kReductionRivals[] = {
    {"xring_shm", "gloo", 2, 2},
    {"xring_shm", "mpi", 2, 1.4},
    {"xring_shm", "gloo", 4, 1.5},
    {"xring_shm", "mpi", 4, std::nullopt},
    {"pscpu_shm", "gloo", 4, 2.2},
    {"pscpu_shm", "mpi", 4, 1.5},
    {"rechd_shm", "gloo_halving_doubling", 4, 1.5},
    {"xring_grpc", "gloo", 2, 1},
    {"xring_grpc", "socket_floor", 2, 0.75},
    {"xring_grpc", "gloo", 4, 0.85},
    {"xring_grpc", "socket_floor", 4, 0.75},
};

// Microseconds: about twice what a step takes, its gradient's writing included.
int64_t ReductionPeriod(int workers) { return 50'000 * workers; }

Side ReductionSide(const Reduction& reduction, const std::string& title, int workers) {
  const SyntheticJob job{
      .transport = reduction.transport,
      .workers = workers,
      .variables = reduction.variables,
      .elements = reduction.elements,
      .steps = kReductionSteps,
      .strategy = absl::StrCat(
          "replicated { cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: '",
          reduction.spec, "' packing { ", reduction.packing, " } } } }")};
  return {reduction.name, title, ReleasedStep(job, ReductionPeriod(workers))};
}

// A program that tests/bench/peers/steps.h describes, with further arguments, started by
// `launcher`.
Side ReductionPeer(const BenchOptions& options, const std::string& name, const std::string& title,
                   const std::string& program, std::vector<std::string> launcher,
                   const std::vector<std::string>& further, int workers) {
  const std::string path = absl::StrCat(options.peers_dir, "/", program);
  const auto run = [path, launcher, further, workers](int64_t release_every) {
    std::vector<std::string> argv = launcher;
    for (const std::string& argument :
         {path, absl::StrCat(workers), absl::StrCat(kReducedMebibytes),
          absl::StrCat(kReductionSteps), absl::StrCat(release_every)}) {
      argv.push_back(argument);
    }
    argv.insert(argv.end(), further.begin(), further.end());
    return ReadMilliseconds(argv);
  };
  Side side{name, title, MedianReleased(ReductionPeriod(workers), kReductionSteps, run)};
  if (!std::filesystem::exists(path)) {
    side.absent = "not installed. Remedy: ./lockstep bench --peers";
  }
  return side;
}

std::vector<Side> ReductionPeers(const BenchOptions& options, int workers) {
  // More processes than processors are wanted, and root is allowed.
  const std::vector<std::string> mpirun = {"/usr/bin/mpirun", "--allow-run-as-root",
                                           "--oversubscribe", "-np", absl::StrCat(workers)};
  const std::string floor = "what TCP, copies, sums and updates cost at least";
  return {
      ReductionPeer(options, "gloo", "gloo all-reduce (ring_chunked) + SGD", "gloo_step", {}, {},
                    workers),
      ReductionPeer(options, "gloo_halving_doubling", "gloo all-reduce (halving_doubling) + SGD",
                    "gloo_step", {}, {"halving_doubling"}, workers),
      ReductionPeer(options, "mpi", "Open MPI all-reduce + SGD", "mpi_step", mpirun, {}, workers),
      {"socket_floor", floor,
       MedianMilliseconds({BuiltProgram("tests/bench/peers/socket_floor"), absl::StrCat(workers),
                           absl::StrCat(kReducedMebibytes), "ring"})},
  };
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
  for (Side& side : ReductionPeers(options, workers)) contest.sides.push_back(std::move(side));
  for (const ReductionRival& rival : kReductionRivals) {
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
