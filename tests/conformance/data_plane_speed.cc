// Push and pull of a large gradient over loopback, timed: 64 MiB in 16 variables, one worker, both
// ends in processes of their own. Prints payload GB/s. Run by hand: figures of a shared machine are
// no test. Arguments: rounds (30), TCP congestion control is the system's.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/client/gradient_pusher.h"
#include "common/client/variable_puller.h"
#include "common/rpc/process.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"

namespace lockstep {
namespace {

constexpr int kVariables = 16;
constexpr int64_t kElements = 1 << 20;
constexpr double kGigabytes = kVariables * kElements * sizeof(float) / 1e9;

[[noreturn]] void ServeUntilKilled(int port_pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ps::Shard shard{ps::ShardOptions{}};
  const auto server = ps::PsServer::Start(
      &shard, {.address = "127.0.0.1:0",
               .identity = {.cluster = kTestCluster, .incarnation = Incarnation(1)}});
  LOCKSTEP_CHECK(server.ok());
  const int port = (*server)->port();
  LOCKSTEP_CHECK(write(port_pipe, &port, sizeof port) == sizeof port);
  while (true) pause();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Run(int rounds, const ClientOptions& ps) {
  const auto control = MakePsControl(ps);
  const auto data = MakePsData(ps);
  SetViewRequest view = TwoWorkers();
  view.mutable_members()->RemoveLast();
  LOCKSTEP_CHECK(Await<SetViewReply>([&](auto done) { control->SetView(view, done); }).ok());
  CreateVariablesRequest create = Variables(std::vector<int64_t>(kVariables, kElements));
  create.set_total_num_replicas(1);
  create.set_replicas_to_aggregate(1);
  LOCKSTEP_CHECK(
      Await<CreateVariablesReply>([&](auto done) { control->CreateVariables(create, done); }).ok());

  std::vector<Tensor> gradients, values;
  std::vector<PullTarget> targets;
  for (uint32_t i = 0; i < kVariables; ++i) {
    gradients.push_back(Tensor::Zeros(DType::kFloat32, Shape({kElements})));
    values.push_back(Tensor::Zeros(DType::kFloat32, Shape({kElements})));
    targets.push_back({VariableId(i), values.back().view()});
  }
  PusherOptions push_options;
  push_options.identity = Worker(0);
  PullerOptions pull_options;
  pull_options.identity = Worker(0);
  GradientPusher pusher(data.get(), push_options);
  VariablePuller puller(data.get(), pull_options, targets);

  std::vector<double> push_seconds, pull_seconds, step_seconds;
  for (int64_t step = 0; step < rounds; ++step) {
    GrantRequest grant = Granted(step);
    grant.set_required(1);
    Answer<GrantReply> closed;
    control->Grant(grant, closed.done());
    const absl::Time start = absl::Now();
    Answer<PushSummary> pushed;
    pusher.Start(PushSeq(static_cast<uint64_t>(step) + 1), GlobalStep(step), kVariables,
                 pushed.done());
    for (uint32_t i = 0; i < kVariables; ++i) pusher.Add(VariableId(i), gradients[i].view());
    LOCKSTEP_CHECK(pushed.Wait()->accepted == kVariables);
    const absl::Time after_push = absl::Now();
    LOCKSTEP_CHECK(closed.Wait().ok());
    const absl::Time before_pull = absl::Now();
    Answer<GlobalStep> fetched;
    puller.Fetch(GlobalStep(step + 1), fetched.done());
    LOCKSTEP_CHECK(*fetched.Wait() == GlobalStep(step + 1));
    const absl::Time end = absl::Now();
    push_seconds.push_back(absl::ToDoubleSeconds(after_push - start));
    pull_seconds.push_back(absl::ToDoubleSeconds(end - before_pull));
    step_seconds.push_back(absl::ToDoubleSeconds(end - start));
  }
  std::printf("push %.2f GB/s  pull %.2f GB/s  step %.1f ms (%.2f GB/s both ways)\n",
              kGigabytes / Median(push_seconds), kGigabytes / Median(pull_seconds),
              1e3 * Median(step_seconds), 2 * kGigabytes / Median(step_seconds));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  TuneHeap();
  int port_pipe[2];
  LOCKSTEP_CHECK(pipe(port_pipe) == 0);
  const pid_t server = fork();
  if (server == 0) ServeUntilKilled(port_pipe[1]);
  int port = 0;
  LOCKSTEP_CHECK(read(port_pipe[0], &port, sizeof port) == sizeof port);
  Run(argc > 1 ? std::atoi(argv[1]) : 30,
      {.address = absl::StrCat("127.0.0.1:", port), .name = "ps 0"});
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
}
