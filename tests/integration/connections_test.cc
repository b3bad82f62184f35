// The memory of a ps that many clients are connected to, against what docs/operations.md promises.
// The clients are stock gRPC channels, each with a connection of its own.
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/client/ps_control.h"
#include "common/client/status_client.h"
#include "proto/ps.grpc.pb.h"
#include "tests/conformance/small_job.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/support/await.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
constexpr int kConnections = 1000;
constexpr int64_t kElements = 4'194'304;
// Of a connection that is idle, and of a call that waits on it.
constexpr uint64_t kConnectionBytes = 24 << 10;
constexpr uint64_t kWaitingBytes = 24 << 10;
constexpr uint64_t kDense = kElements * sizeof(float);

// As many descriptors as the hard limit allows: each connection is one.
void RaiseDescriptorLimit() {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(limit.rlim_cur > 2 * kConnections);
}

// Worker 0 of a job with one ps, over and over.
class Clients {
 public:
  explicit Clients(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    for (int i = 0; i < kConnections; ++i) {
      channels_.push_back(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
      channels_.back()->GetState(/*try_to_connect=*/true);
    }
    const auto deadline = std::chrono::system_clock::now() + absl::ToChronoSeconds(kWhole);
    for (const auto& channel : channels_) REQUIRE(channel->WaitForConnected(deadline));
  }
  ~Clients() {
    for (const auto& call : calls_) call->context.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool is_ok = false;
    while (queue_.Next(&tag, &is_ok)) {
    }
  }

  // One on each connection, for different values of a version that does not come.
  void Pull() {
    for (int i = 0; i < kConnections; ++i) {
      PullRequest pull = PullOf(0, 1, 0);
      pull.mutable_pieces(0)->set_offset(static_cast<uint64_t>(i) * sizeof(float));
      pull.mutable_pieces(0)->set_size(sizeof(float));
      calls_.push_back(std::make_unique<Call>());
      Call& call = *calls_.back();
      call.reader = ParameterServer::NewStub(channels_[i])->AsyncPull(&call.context, pull, &queue_);
      call.reader->Finish(&call.reply, &call.status, &call);
    }
  }

 private:
  struct Call {
    grpc::ClientContext context;
    PullReply reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<PullReply>> reader;
  };

  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_CASE("A ps has no more memory than its formula under 1,000 connections, idle or waiting") {
  RaiseDescriptorLimit();
  Cluster cluster(1, 1);
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kWhole));
  const std::string& address = cluster.spec().ps[0];
  const auto control = MakePsControl({.address = address, .name = "ps 0"});
  SetViewRequest view = TwoWorkers();
  view.mutable_members()->RemoveLast();
  view.set_cluster(cluster.spec().Canonical());
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  REQUIRE(CallAndWait(*control, kCreateVariables, Variables({kElements})).ok());
  const auto waiting_pulls = [&] {
    const auto status = FetchStatus(address, kWhole);
    REQUIRE(status.ok());
    return static_cast<int>(status->shard().waiting_pulls());
  };

  ForgetPeak(ps);
  const uint64_t before = MemoryOf(ps).peak;
  Clients clients(address);
  REQUIRE(waiting_pulls() == 0);
  const uint64_t idle = MemoryOf(ps).peak;
  clients.Pull();
  while (waiting_pulls() < kConnections) {
  }
  const uint64_t waiting = MemoryOf(ps).peak;
  CAPTURE(before, idle, waiting);
  CHECK(idle <= before + kConnections * kConnectionBytes);
  CHECK(waiting <= idle + kConnections * kWaitingBytes);
  const uint64_t formula = 3 * kDense + kDense + 6 * kMebibyte + 40 * kMebibyte;
  CHECK(waiting <= formula * 11 / 10);
}

}  // namespace
}  // namespace lockstep::test
