// A step without a parameter server: the gradients of worker processes are reduced by
// worker/peer, then each worker applies SGD to its own variables.
//
//   reduction_step WORKERS STEPS RELEASE_EVERY_US SPEC shm|grpc VARIABLES FLOATS NUM_PACKS
//
// VARIABLES of FLOATS each, reduced as NUM_PACKS packs; 0: each by itself.
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/rpc/alarm_timer.h"
#include "common/rpc/process.h"
#include "common/rpc/server.h"
#include "tests/bench/peers/huge_pages.h"
#include "tests/bench/peers/steps.h"
#include "worker/collective/multi_worker_all_reduce.h"
#include "worker/peer/peer_group_reducer.h"

namespace lockstep::bench {
namespace {

using worker::Group;
using worker::GroupReduction;
using worker::PeerGroupReducer;
using worker::TensorSpec;

constexpr float kLearningRate = 0.01f;
constexpr int kMostWorkers = 64;

struct Setup {
  PeerJob job;
  worker::AllReduceSpec spec;
  bool shared_memory = false;
  int variables = 0;
  worker::PackingOptions packing;
};

// The ports of all workers' servers, in memory that all processes share. 0: not listening yet.
using Ports = std::atomic<int>;

Ports* SharePorts() {
  void* const memory = mmap(nullptr, kMostWorkers * sizeof(Ports), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Ports*>(memory);
}

Group JoinGroup(const Setup& setup, int worker, int port, Ports* ports) {
  ports[worker] = port;
  Group group{.job = 1, .view = {1, 1, 1}, .position = worker};
  for (int i = 0; i < setup.job.workers; ++i) {
    while (ports[i] == 0) std::this_thread::yield();
    group.members.push_back({static_cast<uint32_t>(i), static_cast<uint64_t>(i) + 1,
                             absl::StrCat("127.0.0.1:", ports[i].load())});
  }
  return group;
}

absl::StatusOr<GroupReduction> PlanReduction(const Setup& setup) {
  const worker::Topology topology{setup.job.workers, 1};
  const auto length = static_cast<int64_t>(setup.job.floats / setup.variables);
  std::vector<TensorSpec> tensors;
  for (int i = 0; i < setup.variables; ++i) {
    tensors.push_back({absl::StrCat("v", i), DType::kFloat32, Shape({length})});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto op,
      worker::MultiWorkerAllReduce::Create(
          {.topology = topology, .all_reduce_spec = setup.spec, .packing = setup.packing}));
  LOCKSTEP_ASSIGN_OR_RETURN(worker::BatchPlan plan, op->Plan(topology, tensors));
  return GroupReduction{topology, tensors, std::move(plan)};
}

bool ReduceAndApply(const Setup& setup, int worker, PeerGroupReducer* reducer, StepTimes* times) {
  const size_t length = setup.job.floats / setup.variables;
  HugePageVector<float> gradient(setup.job.floats);
  HugePageVector<float> values(setup.job.floats);
  std::vector<std::vector<TensorView>> views(1);
  for (int i = 0; i < setup.variables; ++i) {
    views[0].push_back(
        {DType::kFloat32, Shape({static_cast<int64_t>(length)}), gradient.data() + i * length});
  }
  for (int step = 0; step < times->all_steps(); ++step) {
    std::fill(gradient.begin(), gradient.end(), static_cast<float>(step + worker));
    times->Release(worker, step);
    absl::Notification told;
    absl::Status outcome;
    reducer->Reduce(step, views, [&](absl::Status status) {
      outcome = std::move(status);
      told.Notify();
    });
    told.WaitForNotification();
    if (!outcome.ok()) {
      std::fprintf(stderr, "%s\n", outcome.ToString().c_str());
      return false;
    }
    for (int i = 0; i < setup.variables; ++i) {
      const float* const mean = TensorView(reducer->tensor(0, i)).as<float>().data();
      float* const own = values.data() + i * length;
      for (size_t k = 0; k < length; ++k) own[k] -= kLearningRate * mean[k];
    }
    times->Finish(worker, step);
  }
  const float mean =
      static_cast<float>(times->all_steps() - 1) + static_cast<float>(setup.job.workers - 1) / 2;
  const auto last = TensorView(reducer->tensor(0, setup.variables - 1)).as<float>();
  return last[length / 2] == mean;
}

bool Work(const Setup& setup, int worker, Ports* ports, StepTimes* times) {
  TuneLocks();
  TuneHeap();
  // Standard output is for the times.
  if (!log::Init("reduction_step", "error").ok()) return false;
  worker::PeerService service;
  auto server = Server::Start(
      {.address = "127.0.0.1:0", .owner = absl::StrCat("worker ", worker), .services = {&service}});
  auto reduction = PlanReduction(setup);
  if (!server.ok() || !reduction.ok()) {
    std::fprintf(stderr, "%s\n%s\n", server.status().ToString().c_str(),
                 reduction.status().ToString().c_str());
    return false;
  }
  rpc::AlarmTimer timer((*server)->queue());
  auto reducer =
      PeerGroupReducer::Create({.group = JoinGroup(setup, worker, (*server)->port(), ports),
                                .reduction = *std::move(reduction),
                                .shared_memory = setup.shared_memory,
                                .queue = (*server)->queue(),
                                .timer = &timer},
                               &service);
  return reducer.ok() && ReduceAndApply(setup, worker, reducer->get(), times);
}

absl::StatusOr<Setup> ParseSetup(int argc, char** argv) {
  if (argc != 9) {
    return absl::InvalidArgumentError(
        "expected WORKERS STEPS RELEASE_EVERY_US SPEC shm|grpc VARIABLES FLOATS NUM_PACKS");
  }
  Setup setup;
  setup.job.workers = std::atoi(argv[1]);
  setup.job.steps = std::atoi(argv[2]);
  setup.job.release_every = std::atoll(argv[3]);
  LOCKSTEP_ASSIGN_OR_RETURN(setup.spec, worker::AllReduceSpec::Parse(argv[4]));
  setup.shared_memory = std::string(argv[5]) == "shm";
  setup.variables = std::atoi(argv[6]);
  const int64_t floats = std::atoll(argv[7]);
  setup.packing.num_packs = std::atoi(argv[8]);
  if (setup.job.workers < 2 || setup.job.workers > kMostWorkers || setup.job.steps < 1 ||
      setup.job.release_every < 1 || setup.variables < 1 || floats < 1) {
    return absl::InvalidArgumentError("a number is out of range");
  }
  setup.job.floats = static_cast<size_t>(setup.variables * floats);
  return setup;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Setup> setup = ParseSetup(argc, argv);
  Ports* const ports = SharePorts();
  if (!setup.ok() || ports == nullptr) {
    std::fprintf(stderr, "%s\n", setup.status().ToString().c_str());
    return 64;
  }
  StepTimes times(setup->job);
  const bool well = RunWorkers(setup->job.workers,
                               [&](int worker) { return Work(*setup, worker, ports, &times); });
  return Report(well, "reduction: a worker failed, or its mean was wrong", times);
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
