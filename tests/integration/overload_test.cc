// A ps that is pushed far more than it can hold, or whose replies nobody reads: its memory stays
// within the bounds of docs/operations.md, callers are told, and steps go on when the load ends.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/limits.h"
#include "common/client/ps_control.h"
#include "common/client/status_client.h"
#include "proto/ps.grpc.pb.h"
#include "tests/conformance/small_job.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/integration/unread_calls.h"
#include "tests/support/await.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kRecoveryAllowed = absl::Seconds(5);
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr uint64_t kOwnBytes = 40 * kMebibyte;  // of docs/operations.md, as the next one
constexpr uint64_t kWindow = 6 * kMebibyte;
constexpr int64_t kDenseElements = 8 << 20;
constexpr uint64_t kDense = kDenseElements * sizeof(float);

// A ps whose chief and workers are the test.
class Ps {
 public:
  // With kDense in `variables` of one size. A step takes `aggregate` gradients of the `total`
  // replicas, of `members` workers.
  Ps(int variables, int members, uint32_t total, uint32_t aggregate)
      : variables_(variables),
        aggregate_(aggregate),
        process_(cluster_.Ps(0)),
        control_(MakePsControl({.address = address(), .name = "ps 0"})) {
    REQUIRE(process_.WaitForOutput("listening", kWhole));
    SetMembers(members);
    CreateVariablesRequest request =
        Variables(std::vector<int64_t>(static_cast<size_t>(variables), elements()));
    request.set_total_num_replicas(total);
    request.set_replicas_to_aggregate(aggregate);
    REQUIRE(CallAndWait(*control_, kCreateVariables, request).ok());
    ForgetPeak(process_);
  }

  const std::string& address() const { return cluster_.spec().ps[0]; }
  int variables() const { return variables_; }
  // Of each variable.
  int64_t elements() const { return kDenseElements / variables_; }
  const Process& process() const { return process_; }

  // Workers 0 to `members` - 1.
  void SetMembers(int members) {
    SetViewRequest view = TwoWorkers();
    view.clear_members();
    for (int i = 0; i < members; ++i) {
      const WorkerIdentity worker = Worker(static_cast<uint32_t>(i));
      Member* const member = view.add_members();
      member->set_worker(worker.worker());
      member->set_incarnation(worker.incarnation());
    }
    view.set_cluster(cluster_.spec().Canonical());
    view.set_number(++views_);
    REQUIRE(CallAndWait(*control_, kSetView, view).ok());
  }
  // Answered when the step has closed.
  Answer<GrantReply> Grant(int64_t step) {
    GrantRequest grant = Granted(step);
    grant.set_required(aggregate_);
    Answer<GrantReply> answer;
    control_->Call(kGrant, grant, answer.done());
    return answer;
  }
  ShardStatus Status() const {
    const auto status = FetchStatus(address(), kWhole);
    REQUIRE(status.ok());
    return status->shard();
  }

 private:
  const int variables_;
  const uint32_t aggregate_;
  Cluster cluster_{1, 1};
  Process process_;
  std::unique_ptr<PsControl> control_;
  uint64_t views_ = 0;
};

// A connection of its own, for the calls of any workers.
class Caller {
 public:
  // `ps` outlives it.
  explicit Caller(const Ps* ps) : ps_(*ps) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = ParameterServer::NewStub(
        grpc::CreateCustomChannel(ps->address(), grpc::InsecureChannelCredentials(), arguments));
  }

  // Elements [begin, end) of a variable's gradient.
  grpc::StatusCode Push(int worker, int64_t step, int variable, int64_t begin, int64_t end) {
    PushRequest push = PushOf(static_cast<uint32_t>(worker), step, static_cast<uint32_t>(variable),
                              ps_.elements(), begin, end);
    push.set_payload(std::string(static_cast<size_t>(end - begin) * sizeof(float), '\0'));
    grpc::ClientContext context;
    PushReply reply;
    return stub_->Push(&context, push, &reply).error_code();
  }
  // A gradient of each variable, in the order in which workers push. Again what is refused for
  // lack of room.
  bool PushAll(int worker, int64_t step) {
    const absl::Time deadline = absl::Now() + kWhole;
    for (int variable = ps_.variables() - 1; variable >= 0; --variable) {
      for (int64_t begin = 0; begin < ps_.elements(); begin += kChunk) {
        grpc::StatusCode code = Push(worker, step, variable, begin, begin + kChunk);
        while (code == grpc::RESOURCE_EXHAUSTED && absl::Now() < deadline) {
          absl::SleepFor(absl::Milliseconds(20));  // as docs/protocol.md tells
          code = Push(worker, step, variable, begin, begin + kChunk);
        }
        if (code != grpc::OK) return false;
      }
    }
    return true;
  }
  grpc::StatusCode Pull(const PullRequest& pull) {
    grpc::ClientContext context;
    PullReply reply;
    return stub_->Pull(&context, pull, &reply).error_code();
  }

 private:
  static constexpr int64_t kChunk = (512 << 10) / sizeof(float);

  const Ps& ps_;
  std::unique_ptr<ParameterServer::Stub> stub_;
};

double Mebibytes(uint64_t bytes) { return static_cast<double>(bytes) / kMebibyte; }

// In what messages a gradient comes, all but its last element.
struct Messages {
  std::string name;
  int64_t size;  // elements
  int64_t step;  // elements between the beginnings of two
};

TEST_CASE("a ps that is pushed ten times its budget of gradients keeps to its formula") {
  constexpr int kReplicas = 3;
  constexpr int kGreedy = 10 * kReplicas;
  constexpr int kHonest = 2;
  const Messages messages =
      GENERATE(Messages{"half a MiB each", 131072, 131072}, Messages{"16 KiB each", 4096, 4096},
               Messages{"half of what each brings is new", 131072, 65600});
  CAPTURE(messages.name);
  Ps ps(/*variables=*/4, kHonest + kGreedy, kReplicas, kHonest);
  const auto first = ps.Grant(0);

  std::atomic<int> taken = 0, refused = 0, others = 0;
  const auto push_partially = [&](Caller* caller, int worker) {
    for (int variable = ps.variables() - 1; variable >= 0; --variable) {
      for (int64_t begin = 0; begin < ps.elements(); begin += messages.step) {
        const int64_t end = std::min(begin + messages.size, ps.elements() - 1);
        const grpc::StatusCode code = caller->Push(worker, 0, variable, begin, end);
        ++(code == grpc::OK ? taken : code == grpc::RESOURCE_EXHAUSTED ? refused : others);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kReplicas; ++thread) {
    threads.emplace_back([&, thread] {
      Caller caller(&ps);
      for (int i = thread; i < kGreedy; i += kReplicas) push_partially(&caller, kHonest + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t held = ps.Status().held_bytes();
  CHECK(others == 0);
  CHECK(taken > 0);
  CHECK(refused > taken);
  CHECK(held <= kReplicas * kDense);
  CHECK(held > kDense);

  // The workers that push and never finish are members no more.
  const absl::Time end = absl::Now();
  ps.SetMembers(kHonest);
  Caller caller(&ps);
  for (int worker = 0; worker < kHonest; ++worker) REQUIRE(caller.PushAll(worker, 0));
  REQUIRE(Answer<GrantReply>(first).Wait().ok());
  const absl::Duration recovery = absl::Now() - end;
  CHECK(recovery < kRecoveryAllowed);
  for (int64_t step = 1; step < 5; ++step) {
    auto closed = ps.Grant(step);
    for (int worker = 0; worker < kHonest; ++worker) REQUIRE(caller.PushAll(worker, step));
    REQUIRE(closed.Wait().ok());
  }
  CHECK(ps.Status().held_bytes() == 0);
  const uint64_t formula = 3 * kDense + kReplicas * (kDense + kWindow) + kOwnBytes;
  const uint64_t peak = MemoryOf(ps.process()).peak;
  std::cout << absl::StrFormat(
      "%s: %d messages taken, %d refused, %.0f MiB held of %.0f; a step %.2f s after the load; "
      "peak %.0f MiB, formula %.0f MiB\n",
      messages.name, taken.load(), refused.load(), Mebibytes(held), Mebibytes(kReplicas * kDense),
      absl::ToDoubleSeconds(recovery), Mebibytes(peak), Mebibytes(formula));
  CHECK(peak <= formula * 11 / 10);
}

// What a worker pulls of each version, and does not read.
struct Unread {
  std::string name;
  int variables;  // of one size, below 32 MiB so small that their memory stays in the heap
  int versions;
  int pulls;       // of each version, of the variables in turn
  uint64_t bytes;  // of each pull
};

TEST_CASE("a ps whose replies a worker does not read keeps to its formula") {
  constexpr int kReplicas = 2;
  constexpr uint32_t kDeaf = 0;
  constexpr int kHonest = 1;
  constexpr int kUnread = limits::kMaxUnreadVersionsOfWorker * kDense / kMebibyte;
  const Unread load = GENERATE(
      Unread{"ten times what may be unread, of one version", 1, 1, 10 * kUnread, kMebibyte},
      Unread{"64 KiB of 300 versions", 1, 300, 1, kMebibyte / 16},
      Unread{"64 KiB of 100 versions of 4 variables", 4, 100, 4, kMebibyte / 16},
      Unread{"60 versions", 1, 60, kDense / kMebibyte, kMebibyte});
  CAPTURE(load.name);
  const auto pull_of = [&](int64_t version, int number) {
    const auto variable = static_cast<uint32_t>(number % load.variables);
    const auto before = static_cast<uint64_t>(number / load.variables) * load.bytes;
    PullRequest pull = PullOf(kDeaf, version, variable);
    pull.mutable_pieces(0)->set_offset(before % (kDense / load.variables));
    pull.mutable_pieces(0)->set_size(load.bytes);
    return pull;
  };
  Ps ps(load.variables, kReplicas, kReplicas, 1);
  Caller caller(&ps);
  absl::Duration slowest;
  UnreadCalls::Answers answers;
  {
    UnreadCalls unread(ps.address());
    for (int64_t step = 0; step < load.versions; ++step) {
      for (int i = 0; i < load.pulls; ++i) unread.Pull(pull_of(step, i));
      answers = unread.WaitForAnswers();
      const absl::Time begin = absl::Now();
      auto closed = ps.Grant(step);
      REQUIRE(caller.PushAll(kHonest, step));
      REQUIRE(closed.Wait().ok());
      slowest = std::max(slowest, absl::Now() - begin);
      PullRequest pull = PullOf(kHonest, step + 1, 0);
      pull.mutable_pieces(0)->set_size(kMebibyte);
      CHECK(caller.Pull(pull) == grpc::OK);
    }
    CHECK(answers.refused > 0);
    // Of one version it is exact.
    if (load.versions == 1) CHECK(answers.values == kUnread);
    CHECK(caller.Pull(pull_of(load.versions, 0)) == grpc::RESOURCE_EXHAUSTED);
  }
  const absl::Time end = absl::Now();
  grpc::StatusCode code = grpc::RESOURCE_EXHAUSTED;
  while (code == grpc::RESOURCE_EXHAUSTED && absl::Now() - end < kWhole) {
    code = caller.Pull(pull_of(load.versions, 0));
  }
  const absl::Duration recovery = absl::Now() - end;
  CHECK(code == grpc::OK);
  CHECK(slowest < kRecoveryAllowed);
  CHECK(recovery < kRecoveryAllowed);
  const uint64_t formula = 3 * kDense + kReplicas * (kDense + kWindow) + kOwnBytes;
  const uint64_t peak = MemoryOf(ps.process()).peak;
  std::cout << absl::StrFormat(
      "%s: %d pulls answered, %d refused; a step takes %.2f s at most, a pull is answered %.2f s "
      "after the load; peak %.0f MiB, formula %.0f MiB\n",
      load.name, answers.values, answers.refused, absl::ToDoubleSeconds(slowest),
      absl::ToDoubleSeconds(recovery), Mebibytes(peak), Mebibytes(formula));
  CHECK(peak <= formula * 11 / 10);
}

}  // namespace
}  // namespace lockstep::test
