// The second shard of a ps process: its port, and when the process need not stay for it.
#include "ps/copy/copy_host.h"

#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/client/ps_control.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/ps_data.h"

namespace lockstep::ps {
namespace {

// Of ps 1: it keeps the copy of shard 0.
std::unique_ptr<CopyHost> HostOf(uint32_t num_ps, uint32_t port = 0) {
  return std::make_unique<CopyHost>(
      ShardOptions(),
      PsServerOptions{.address = "127.0.0.1:1",
                      .identity = {.task_index = 1,
                                   .clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                                   .incarnation = Incarnation(3)}},
      num_ps, port);
}

std::unique_ptr<PsControl> ControlOf(CopyHost* host) {
  const absl::StatusOr<uint32_t> port = host->Open();
  REQUIRE(port.ok());
  return MakePsControl({.address = absl::StrCat("127.0.0.1:", *port), .name = "the copy of ps 0"});
}

void CreateCopy(PsControl* control) {
  SetViewRequest view = TwoWorkers();
  view.set_role(COPY);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
  REQUIRE(CallAndWait(*control, kCreateVariables, Variables({3})).ok());
}

TEST_CASE("the port of a copy is opened once, and is the one that was asked for") {
  uint32_t port = 0;
  {
    const auto host = HostOf(2);
    port = host->Open().value();
    CHECK(port > 0);
    CHECK(host->Open().value() == port);
  }
  CHECK(HostOf(2, port)->Open().value() == port);
}

TEST_CASE("the only ps keeps no copy of itself") {
  CHECK(absl::IsFailedPrecondition(HostOf(1)->Open().status()));
}

TEST_CASE("a copy whose name does not resolve is refused at once") {
  CopyHost host(ShardOptions(),
                PsServerOptions{.address = "no-such-host.invalid:1",
                                .insecure = true,
                                .name_patience = absl::Seconds(120),
                                .identity = {.task_index = 1}},
                2, 0);
  const absl::Status refused = host.Open().status();
  CHECK(absl::IsUnavailable(refused));
  CHECK_FALSE(absl::StrContains(refused.message(), "--start_timeout"));
}

TEST_CASE("a copy shows its activity once there is one") {
  const auto host = HostOf(2);
  CHECK(host->Activity() == ShardActivity());
  const auto control = ControlOf(host.get());
  CHECK(host->Activity() == ShardActivity());
  CreateCopy(control.get());
  CHECK(host->Activity().has_variables);
}

TEST_CASE("a copy refuses the chief when its process leaves the job") {
  const auto host = HostOf(2);
  CHECK_FALSE(host->is_open());
  host->Leave();
  const auto control = ControlOf(host.get());
  CHECK(host->is_open());
  CreateCopy(control.get());
  host->Leave();
  CHECK(absl::IsUnavailable(CallAndWait(*control, kGetView, GetViewRequest()).status()));
}

TEST_CASE("a process need not stay for a copy without variables") {
  const auto host = HostOf(2);
  host->AwaitFinish(absl::InfiniteDuration());
  const auto control = ControlOf(host.get());
  CHECK(CallAndWait(*control, kGetView, GetViewRequest()).ok());
  host->AwaitFinish(absl::InfiniteDuration());
}

TEST_CASE("a process stays until its copy is told that the job is over") {
  const auto host = HostOf(2);
  const auto control = ControlOf(host.get());
  CreateCopy(control.get());
  absl::StatusOr<FinishReply> told = absl::UnknownError("not yet");
  std::thread chief([&] { told = CallAndWait(*control, kFinish, JobIsOver()); });
  host->AwaitFinish(absl::InfiniteDuration());
  chief.join();
  CHECK(told.ok());
}

TEST_CASE("a process does not stay for ever for a copy that nobody tells") {
  const auto host = HostOf(2);
  const auto control = ControlOf(host.get());
  CreateCopy(control.get());
  host->AwaitFinish(absl::Milliseconds(1));
  CHECK(CallAndWait(*control, kGetView, GetViewRequest())->has_variables());
}

}  // namespace
}  // namespace lockstep::ps
