// For which model that could not be saved a ps stays without a chief.
#include "ps/copy/hosted_shards.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/client/ps_control.h"
#include "ps/copy/unsaved_watch.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/temporary_folder.h"

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

// Writes shard 1's file of version 0, without the checkpoint.
ShardFile Write(PsControl* control, const std::string& folder) {
  SaveRequest save;
  *save.mutable_command() = ChiefCommand();
  save.set_folder(folder);
  const auto saved = CallAndWait(*control, kSave, save);
  INFO(saved.status().ToString());
  REQUIRE(saved.ok());
  return {.file = saved->file(), .bytes = saved->bytes()};
}

UnsavedWatch::Answer CheckUntilRead(UnsavedWatch* watch, absl::Duration now) {
  UnsavedWatch::Answer answer = watch->Check(now);
  while (answer == UnsavedWatch::Answer::kReading) {
    std::this_thread::yield();
    answer = watch->Check(now);
  }
  return answer;
}

TEST_CASE("A ps without a chief holds what it wrote until the checkpoint exists") {
  const test::TemporaryFolder root;
  ThisPs ps;
  const bool serves_copy = GENERATE(false, true);
  CAPTURE(serves_copy);
  PsControl* const control = serves_copy ? ps.copy.get() : ps.own.get();
  SetRole(control, serves_copy ? 0 : 1, PRIMARY, 1);
  Create(control);
  UnsavedWatch watch(ps.shards);
  CHECK(watch.Check(absl::ZeroDuration()) == UnsavedWatch::Answer::kNothing);
  const ShardFile file = Write(control, CheckpointFolder(root.path(), 0));
  CHECK(watch.Check(absl::ZeroDuration()) == UnsavedWatch::Answer::kReading);
  CHECK(CheckUntilRead(&watch, absl::ZeroDuration()) == UnsavedWatch::Answer::kUnsaved);
  // As a chief does that was stopped, and goes on.
  REQUIRE(CommitCheckpoint(root.path(), {.epoch = 1, .shards = {file}}, /*keep_last=*/0).ok());
  const absl::Duration later = UnsavedWatch::kPeriod;
  CHECK(watch.Check(later - absl::Milliseconds(1)) == UnsavedWatch::Answer::kUnsaved);
  CHECK(CheckUntilRead(&watch, later) == UnsavedWatch::Answer::kNothing);
}

}  // namespace
}  // namespace lockstep::ps
