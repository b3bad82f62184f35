// Calls of a chief for which a ps waits for its disk.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/service/ps_server.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

TEST_CASE("A ps saves to and restores from folders below its checkpoint roots alone") {
  Shard shard(ShardOptions{});
  const auto server = PsServer::Start(
      &shard, {.address = "127.0.0.1:0",
               .identity = {.clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                            .incarnation = Incarnation(3),
                            .checkpoint_roots = PathRoots::Create({"/a"}).value()}});
  REQUIRE(server.ok());
  const auto control =
      MakePsControl({.address = absl::StrCat("127.0.0.1:", (*server)->port()), .name = "ps 0"});
  REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
  CreateVariablesRequest create = Variables({3});
  create.set_restore_from("/a/../b/ckpt-1");
  const absl::Status restored = CallAndWait(*control, kCreateVariables, create).status();
  CHECK(absl::IsPermissionDenied(restored));
  CHECK(absl::StrContains(restored.message(), "/a/../b/ckpt-1 is not below /a. Remedy: "));
  create.clear_restore_from();
  REQUIRE(CallAndWait(*control, kCreateVariables, create).ok());
  SaveRequest save;
  *save.mutable_command() = create.command();
  save.set_folder("/b/ckpt-1");
  CHECK(absl::IsPermissionDenied(CallAndWait(*control, kSave, save).status()));
}

TEST_CASE("Calls that would wait for the disk are admitted first") {
  absl::Notification creating, go_on;
  Shard shard({.make_value_memory = [&](uint64_t) -> std::optional<LentMemory> {
    creating.Notify();
    go_on.WaitForNotification();
    return std::nullopt;
  }});
  const auto server = PsServer::Start(
      &shard, {.address = "127.0.0.1:0",
               .identity = {.clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                            .incarnation = Incarnation(3)}});
  REQUIRE(server.ok());
  const auto control =
      MakePsControl({.address = absl::StrCat("127.0.0.1:", (*server)->port()), .name = "ps 0"});
  REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
  absl::Notification created;
  control->Call(kCreateVariables, Variables({3}), [&](const auto&) { created.Notify(); });
  creating.WaitForNotification();

  CreateVariablesRequest create = Variables({3});
  create.mutable_command()->set_job(create.command().job() + 1);
  SaveRequest save;
  *save.mutable_command() = create.command();
  CHECK(absl::IsFailedPrecondition(CallAndWait(*control, kCreateVariables, create).status()));
  CHECK(absl::IsFailedPrecondition(CallAndWait(*control, kSave, save).status()));
  go_on.Notify();
  created.WaitForNotification();
}

}  // namespace
}  // namespace lockstep::ps
