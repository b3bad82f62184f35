// Callers of another version, at processes of a job that runs: who is refused where.
#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/version.h"
#include "common/client/chief_client.h"
#include "common/client/ps_control.h"
#include "proto/ps.grpc.pb.h"
#include "tests/integration/training_run.h"
#include "tests/support/await.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr char kOther[] = "0.0.9-older";
constexpr uint64_t kStranger = 77;

// FAILED_PRECONDITION is what a process ends with 78 for.
void CheckNamesBoth(const absl::Status& refused, const std::string& who) {
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains(absl::StrCat(who, " of version ", kOther)) &&
                                                 Contains(absl::StrCat(" of version ", kVersion)) &&
                                                 Contains("Remedy: "));
}

// What each call of a worker to the ps ends with.
std::vector<grpc::Status> CallAsWorker(ParameterServer::Stub* ps, const WorkerIdentity& worker) {
  std::vector<grpc::Status> ends;
  const auto call = [&](auto method, auto request, auto reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    *request.mutable_worker() = worker;
    ends.push_back((ps->*method)(&context, request, &reply));
  };
  using Stub = ParameterServer::Stub;
  call(&Stub::DequeueToken, DequeueTokenRequest(), DequeueTokenReply());
  call(&Stub::Pull, PullRequest(), PullReply());
  call(&Stub::Push, PushRequest(), PushReply());
  call(&Stub::StoreVersion, StoreVersionRequest(), StoreVersionReply());
  call(&Stub::AttachMemory, AttachMemoryRequest(), AttachMemoryReply());
  return ends;
}

TEST_CASE("the chief lets no worker of another version in, and without it a ps refuses each call") {
  Cluster cluster(1, 2);
  cluster.StartAll({}, {}, /*workers=*/1);
  REQUIRE(cluster.chief().WaitForOutput("worker 0 (", kWhole));
  const std::string& ps_address = cluster.spec().ps[0];
  const auto chief = MakeChiefClient({.address = cluster.spec().chief, .name = "chief"});
  const auto control = MakePsControl({.address = ps_address, .name = "ps 0"});

  RegisterTaskRequest registration;
  registration.set_worker(1);
  registration.set_incarnation(kStranger);
  registration.set_cluster(cluster.spec().Canonical());
  registration.set_version(kOther);
  CheckNamesBoth(CallAndWait(*chief, kRegisterTask, registration).status(), "worker 1 is");

  // Job and epoch, which the chief tells those that it lets in.
  const auto view = CallAndWait(*control, kGetView, GetViewRequest());
  REQUIRE(view.ok());
  const auto ps =
      ParameterServer::NewStub(grpc::CreateChannel(ps_address, grpc::InsecureChannelCredentials()));
  for (const uint32_t index : {0, 1}) {
    WorkerIdentity worker;
    worker.set_job(view->job());
    worker.set_epoch(view->epoch());
    worker.set_worker(index);
    worker.set_incarnation(kStranger);
    for (const grpc::Status& end : CallAsWorker(ps.get(), worker)) {
      CAPTURE(index, end.error_code(), end.error_message());
      const bool is_refused = absl::StrContains(end.error_message(), "is not a member") ||
                              absl::StrContains(end.error_message(), "has been replaced by");
      CHECK(is_refused);
    }
  }
  cluster.StartWorker(1);
  CHECK(Finish(cluster)["steps"] == JobText().max_steps);
}

TEST_CASE("a ps obeys no chief of another version, and lets none stand by") {
  Cluster cluster(1, 1);
  cluster.StartAll({.max_steps = 1000});
  REQUIRE(cluster.WaitForStep(5, kWhole));
  const auto control = MakePsControl({.address = cluster.spec().ps[0], .name = "ps 0"});
  const auto seen = CallAndWait(*control, kGetView, GetViewRequest());
  REQUIRE(seen.ok());
  CHECK(seen->version() == kVersion);

  SetViewRequest view;
  view.mutable_command()->set_job(seen->job());
  view.mutable_command()->set_term(seen->term() + 1);
  view.mutable_command()->set_chief(kStranger);
  view.set_epoch(seen->epoch());
  view.set_cluster(cluster.spec().Canonical());
  view.set_version(kOther);
  CheckNamesBoth(CallAndWait(*control, kSetView, view).status(), "the chief");

  WatchCommandRequest watch;
  watch.set_caller(kStranger);
  watch.set_cluster(cluster.spec().Canonical());
  watch.set_version(kOther);
  CheckNamesBoth(CallAndWait(*control, kWatchCommand, watch).status(), "the chief");
  CHECK(Finish(cluster)["steps"] == 1000);
}

}  // namespace
}  // namespace lockstep::test
