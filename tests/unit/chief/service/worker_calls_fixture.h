// The calls of two workers, without a network; time passes when the test says so.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/service/worker_calls.h"
#include "common/base/clock.h"
#include "common/base/version.h"
#include "common/config/cluster_proto.h"

namespace lockstep::chief::worker_calls_test {

inline const ClusterSpec kCluster{
    .ps = {"127.0.0.1:1"}, .workers = {"127.0.0.1:2", "127.0.0.1:3"}, .chief = "127.0.0.1:4"};

inline constexpr uint64_t kRun = 77;

// The answer to one call; empty while it is parked.
template <typename Reply>
using Reply_ = std::shared_ptr<std::optional<absl::StatusOr<Reply>>>;

template <typename Reply>
std::pair<Reply_<Reply>, Answer<Reply>> Arm() {
  auto got = std::make_shared<std::optional<absl::StatusOr<Reply>>>();
  return {got, Answer<Reply>([got](absl::StatusOr<Reply> reply) { *got = std::move(reply); })};
}

struct Fixture {
  // Process `incarnation` gets this reply: its calls name it from now on.
  template <typename Reply>
  void Receive(uint64_t incarnation, const Reply_<Reply>& reply) {
    received[incarnation] = (*reply)->value().id();
  }
  template <typename Request>
  void NameLastReply(Request* request) const {
    const auto last = received.find(request->incarnation());
    if (last != received.end()) *request->mutable_last_reply() = last->second;
  }
  Reply_<RegisterTaskReply> Register(uint32_t worker, uint64_t incarnation,
                                     const std::string& cluster = kCluster.Canonical(),
                                     const std::string& version = kVersion) {
    RegisterTaskRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_cluster(cluster);
    request.set_version(version);
    request.set_host("node");
    request.set_pid(17);
    NameLastReply(&request);
    auto [got, answer] = Arm<RegisterTaskReply>();
    calls.Register(request, std::move(answer));
    return got;
  }
  Reply_<HeartbeatReply> Beat(uint32_t worker, uint64_t incarnation,
                              std::vector<EvaluationResult> results = {}, uint64_t job = 9) {
    HeartbeatRequest request;
    request.set_job_id(job);
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_local_step(5);
    NameLastReply(&request);
    for (EvaluationResult& result : results) *request.add_results() = result;
    auto [got, answer] = Arm<HeartbeatReply>();
    calls.Heartbeat(request, std::move(answer));
    return got;
  }
  Reply_<HeartbeatReply> Leave(uint32_t worker, uint64_t incarnation) {
    HeartbeatRequest request;
    request.set_job_id(9);
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_leaving(true);
    auto [got, answer] = Arm<HeartbeatReply>();
    calls.Heartbeat(request, std::move(answer));
    return got;
  }
  void Begin() {
    RegisterTaskReply job;
    job.set_ready(true);
    job.set_job_id(9);
    calls.Begin(job, [] { return GlobalStep(12); });
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      calls.Tick();
    }
  }
  // Two workers that train.
  void Train() {
    Register(0, 10);
    Register(1, 20);
    Begin();
  }

  ManualClock clock;
  Membership membership{kCluster.workers, absl::Seconds(5)};
  EvaluationQueue evaluations{10, 4, absl::Seconds(30)};
  bool shards_know = true;
  std::vector<ShardPlace> places;
  int changes = 0;
  int results = 0;
  int ends_known = 0;
  std::vector<std::string> warnings;
  std::optional<absl::Status> failure;
  std::map<uint64_t, ReplyId> received;  // by incarnation
  std::shared_ptr<KnownClusterSpecs> clusters =
      std::make_shared<KnownClusterSpecs>(kCluster.Canonical());
  WorkerCalls calls{kRun,
                    ToldCluster(clusters, ToProto(kCluster)),
                    &membership,
                    &evaluations,
                    &clock,
                    {.members_changed = [this] { ++changes; },
                     .admitted = [this](const LiveMember&) { return shards_know; },
                     .shard_places = [this] { return places; },
                     .waiting_for = [] { return "worker 1"; },
                     .worker_failed = [this](absl::Status why) { failure = std::move(why); },
                     .result_arrived = [this] { ++results; },
                     .end_known = [this] { ++ends_known; },
                     .warn = [this](std::string line) { warnings.push_back(std::move(line)); }}};
};

}  // namespace lockstep::chief::worker_calls_test
