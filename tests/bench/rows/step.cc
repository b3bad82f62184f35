// One synchronous step of all workers on one machine, from the moment when their gradients are
// released until the slowest has all variables of the next version.
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/built.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/synthetic_job.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kMebibytes = 64;

struct TransportRow {
  const char* name;  // of the row: step_<name>_2w
  const char* job;   // its transport { ... }
  const char* title;
  bool tls = false;
};

constexpr TransportRow kTransports[] = {
    {"shm", "shared_memory: COPY", "Lockstep, shared memory, copied"},
    {"shm_mapped", "shared_memory: MAP", "Lockstep, shared memory, in place"},
    {"grpc", "shared_memory: OFF", "Lockstep, float32 through sockets"},
    {"grpc_tls", "shared_memory: OFF", "Lockstep, float32 through mutual TLS", true},
    {"grpc_checksums", "shared_memory: OFF checksums: true",
     "Lockstep, float32 through sockets, with checksums"},
    {"grpc_bf16", "shared_memory: OFF wire_type: BFLOAT16", "Lockstep, bfloat16 through sockets"},
};

struct Rival {
  const char* transport;
  const char* peer;              // a transport or a peer's name
  std::optional<double> target;  // nullopt: reported alone
  bool of_four_workers;          // there is a row of four workers as well as one of two
};

constexpr Rival kRivals[] = {
    {"shm", "gloo", 1.9, true},
    {"shm", "zeromq", 2.2, true},
    {"shm_mapped", "zeromq", 3.8, true},
    {"grpc", "zeromq", 0.88, true},
    {"grpc", "socket_floor", 0.82, true},
    {"grpc_bf16", "grpc", 1.1, false},
    {"grpc_tls", "grpc", std::nullopt, false},
    {"grpc_checksums", "grpc", std::nullopt, false},
};

// Microseconds: about twice what a step takes, its gradient's writing included.
int64_t ReleaseEvery(int workers) { return 50'000 * workers; }

Side PeerSide(const BenchOptions& options, const std::string& name, const std::string& title,
              int workers, int steps) {
  const std::string program = absl::StrCat(options.peers_dir, "/", name, "_step");
  Side side{
      name, title,
      MedianReleased(ReleaseEvery(workers), steps, PeerSteps(program, workers, kMebibytes, steps))};
  if (!std::filesystem::exists(program)) {
    side.absent = "not installed. Remedy: ./lockstep bench --peers";
  }
  return side;
}

Contest StepContest(const BenchOptions& options, int workers) {
  Contest contest;
  contest.unit = "ms";
  contest.note = absl::StrFormat(
      "%d MiB float32 in 16 variables, SGD, 1 ps, %d workers, gradients released every %d ms; %s",
      kMebibytes, workers, ReleaseEvery(workers) / 1000, options.network);
  SyntheticJob job;
  job.workers = workers;
  for (const TransportRow& transport : kTransports) {
    job.transport = transport.job;
    job.flags.clear();
    if (transport.tls) job.flags.push_back("--tls");
    contest.sides.push_back(
        {transport.name, transport.title, ReleasedStep(job, ReleaseEvery(workers))});
  }
  for (const Rival& rival : kRivals) {
    if (workers != 2 && !rival.of_four_workers) continue;
    contest.comparisons.push_back(
        {absl::StrCat("step_", rival.transport, "_", workers, "w/", rival.peer), rival.transport,
         rival.peer, rival.target});
  }
  contest.sides.push_back(
      PeerSide(options, "gloo", "gloo all-reduce (ring_chunked) + SGD", workers, job.steps));
  contest.sides.push_back(
      {"socket_floor", "what TCP, copies, sums and updates cost at least",
       MedianMilliseconds({BuiltProgram("tests/bench/peers/socket_floor"), absl::StrCat(workers),
                           absl::StrCat(kMebibytes), "ps"})});
  contest.sides.push_back(
      PeerSide(options, "zeromq", "ZeroMQ parameter server", workers, job.steps));
  return contest;
}

}  // namespace

RowGroup StepRows(int workers) {
  return AsGroup([workers](const BenchOptions& options) { return StepContest(options, workers); });
}

}  // namespace lockstep::bench
