// For which model that could not be saved a ps stays without a chief.
#include "ps/copy/hosted_shards.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/client/ps_control.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"

namespace lockstep::ps {
namespace {

// Ps 1 of three: its own shard, and the copy of shard 0.
class ThisPs {
 public:
  ThisPs()
      : host_(ShardOptions(), OptionsOf("127.0.0.1:1"), /*num_ps=*/3, /*port=*/0),
        server_(PsServer::Start(&own_, OptionsOf("127.0.0.1:0")).value()),
        own(ControlOf(server_->port())),
        copy(ControlOf(static_cast<int>(host_.Open().value()))),
        shards(&own_, &host_) {}

 private:
  static PsServerOptions OptionsOf(std::string address) {
    return {.address = std::move(address),
            .identity = {.task_index = 1,
                         .clusters = std::make_shared<KnownClusterSpecs>(kTestCluster),
                         .incarnation = Incarnation(3)}};
  }
  static std::unique_ptr<PsControl> ControlOf(int port) {
    return MakePsControl({.address = absl::StrCat("127.0.0.1:", port), .name = "ps 1"});
  }

  Shard own_{ShardOptions()};
  CopyHost host_;
  const std::unique_ptr<PsServer> server_;

 public:
  const std::unique_ptr<PsControl> own;
  const std::unique_ptr<PsControl> copy;
  const HostedShards shards;
};

void SetRole(PsControl* control, uint32_t shard, ShardRole role, uint64_t number) {
  SetViewRequest view = TwoWorkers();
  view.set_shard(shard);
  view.set_number(number);
  view.set_role(role);
  REQUIRE(CallAndWait(*control, kSetView, view).ok());
}

void Create(PsControl* control) {
  CreateVariablesRequest create = Variables({3});
  create.mutable_placement()->set_shards(3);
  REQUIRE(CallAndWait(*control, kCreateVariables, create).ok());
}

void FailToSave(PsControl* control) {
  SaveRequest save;
  *save.mutable_command() = ChiefCommand();
  save.set_folder("/dev/null/ckpt-0");
  REQUIRE_FALSE(CallAndWait(*control, kSave, save).ok());
}

TEST_CASE("A ps holds nothing unsaved before a save has failed") {
  ThisPs ps;
  CHECK_FALSE(ps.shards.HoldUnsaved());
  SetRole(ps.own.get(), 1, PRIMARY, 1);
  Create(ps.own.get());
  SetRole(ps.copy.get(), 0, COPY, 1);
  Create(ps.copy.get());
  CHECK_FALSE(ps.shards.HoldUnsaved());
  CHECK(ps.shards.Activity().own.has_variables);
  CHECK(ps.shards.Activity().copy.has_variables);
}

TEST_CASE("A ps holds what its own shard could not save") {
  ThisPs ps;
  SetRole(ps.own.get(), 1, PRIMARY, 1);
  Create(ps.own.get());
  FailToSave(ps.own.get());
  CHECK(ps.shards.HoldUnsaved());
}

TEST_CASE("A ps holds what its copy could not save in its primary's place") {
  ThisPs ps;
  SetRole(ps.own.get(), 1, COPY, 1);
  Create(ps.own.get());
  SetRole(ps.copy.get(), 0, COPY, 1);
  Create(ps.copy.get());
  SetRole(ps.copy.get(), 0, PRIMARY, 2);
  FailToSave(ps.copy.get());
  CHECK(ps.shards.HoldUnsaved());
}

TEST_CASE("A ps holds nothing of a job that is over") {
  ThisPs ps;
  SetRole(ps.copy.get(), 0, PRIMARY, 1);
  Create(ps.copy.get());
  FailToSave(ps.copy.get());
  REQUIRE(CallAndWait(*ps.copy, kFinish, JobIsOver()).ok());
  CHECK_FALSE(ps.shards.HoldUnsaved());
}

}  // namespace
}  // namespace lockstep::ps
