// What a worker and a ps do to move tensors, without a step around it: a gradient in 16 variables
// that the ps keeps until another worker's comes, and a pull of all values. Both ends in processes
// of their own, over TCP on loopback.
//
//   grpc_transport MEBIBYTES ROUNDS    prints milliseconds of push, pull, push, pull, ... on one
//   line
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/client/ps_transport.h"
#include "common/client/shard_session.h"
#include "common/rpc/process.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/session_calls.h"
#include "tests/support/thread_timer.h"

namespace lockstep {
namespace {

constexpr int kVariables = 16;
constexpr int kWarmUp = 3;

[[noreturn]] void ServeUntilKilled(int port_pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ps::Shard shard{ps::ShardOptions{}};
  const auto server = ps::PsServer::Start(
      &shard, {.address = "127.0.0.1:0",
               .identity = {.clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                            .incarnation = Incarnation(1)}});
  LOCKSTEP_CHECK(server.ok());
  const int port = (*server)->port();
  LOCKSTEP_CHECK(write(port_pipe, &port, sizeof port) == sizeof port);
  while (true) pause();
}

class Transport {
 public:
  Transport(const ClientOptions& ps, int64_t elements)
      : control_(MakePsControl(ps)),
        transport_(MakePsTransport(ps, /*gradients=*/nullptr)),
        first_(OptionsOf(0), transport_.get(), &timer_),
        second_(OptionsOf(1), transport_.get(), &timer_) {
    LOCKSTEP_CHECK(CallAndWait(*control_, kSetView, TwoWorkers()).ok());
    const auto create = Variables(std::vector<int64_t>(kVariables, elements));
    LOCKSTEP_CHECK(CallAndWait(*control_, kCreateVariables, create).ok());
    std::vector<FetchTarget> targets;
    for (uint32_t i = 0; i < kVariables; ++i) {
      gradients_.push_back(Tensor::Zeros(DType::kFloat32, Shape({elements})));
      values_.push_back(Tensor::Zeros(DType::kFloat32, Shape({elements})));
      targets.push_back({VariableId(i), values_.back().view()});
    }
    first_.SetTargets(std::move(targets));
  }

  // Each in milliseconds.
  struct Round {
    double push = 0;
    double pull = 0;
  };
  Round Run(int64_t step) {
    Answer<GrantReply> closed;
    control_->Call(kGrant, Granted(step), closed.done());
    Round round;
    round.push = MillisecondsOf([&] { Push(&first_, step); });
    Push(&second_, step);
    LOCKSTEP_CHECK(closed.Wait().ok());
    round.pull = MillisecondsOf(
        [&] { LOCKSTEP_CHECK(*FetchValues(&first_, step + 1) == GlobalStep(step + 1)); });
    return round;
  }

 private:
  static SessionOptions OptionsOf(uint32_t worker) {
    SessionOptions options;
    options.identity = Worker(worker);
    return options;
  }

  template <typename Work>
  static double MillisecondsOf(const Work& work) {
    const absl::Duration start = Clock::Real()->Monotonic();
    work();
    return absl::ToDoubleMilliseconds(Clock::Real()->Monotonic() - start);
  }

  void Push(ShardSession* session, int64_t step) {
    session->BeginGradient(PushSeq(static_cast<uint64_t>(step) + 1), GlobalStep(step), kVariables);
    for (uint32_t i = 0; i < kVariables; ++i) {
      session->Add({VariableId(i), gradients_[i].shape(), gradients_[i].view()});
    }
    LOCKSTEP_CHECK(EndGradient(session)->accepted == kVariables);
  }

  const std::unique_ptr<PsControl> control_;
  const std::unique_ptr<TensorTransport> transport_;
  std::vector<Tensor> gradients_;
  std::vector<Tensor> values_;
  ThreadTimer timer_;
  ShardSession first_;
  ShardSession second_;
};

int Main(int argc, char** argv) {
  const int mebibytes = argc == 3 ? std::atoi(argv[1]) : 0;
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (mebibytes < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: %s MEBIBYTES ROUNDS\n", argv[0]);
    return 64;
  }
  TuneLocks();
  TuneHeap();
  int port_pipe[2];
  LOCKSTEP_CHECK(pipe(port_pipe) == 0);
  const pid_t server = fork();
  if (server == 0) ServeUntilKilled(port_pipe[1]);
  int port = 0;
  LOCKSTEP_CHECK(read(port_pipe[0], &port, sizeof port) == sizeof port);
  {
    const int64_t elements = (int64_t{mebibytes} << 20) / kVariables / sizeof(float);
    Transport transport({.address = absl::StrCat("127.0.0.1:", port), .name = "ps 0"}, elements);
    for (int step = 0; step < kWarmUp + rounds; ++step) {
      const auto round = transport.Run(step);
      if (step >= kWarmUp) std::printf("%.3f %.3f ", round.push, round.pull);
    }
    std::printf("\n");
  }
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }
