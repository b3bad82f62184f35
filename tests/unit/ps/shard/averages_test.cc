// Moving averages: kept beside the variables, read of versions that are kept, saved and restored.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/committed.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;
using test::Harness;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

// Two variables of one element that begin at 4, one that is sparse with two rows, a statistic.
CreateVariablesRequest AveragedPlan(std::vector<std::string> only = {}) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {1}, 0, true, 4},
                                                    {"v", {1}, 0, true, 4},
                                                    {"table", {2, 1}, 0, true, 4, true},
                                                    {"mean", {1}, 0, false, 4}}),
                                       1, 1);
  VariableAverages* averages = plan.mutable_optimizer()->mutable_variable_averages();
  averages->set_decay(.5f);
  for (std::string& name : only) averages->add_only(std::move(name));
  return plan;
}

// Every variable, of the table row 0, goes down by one; the statistic becomes 7.
void Step(Harness* harness, int64_t step, bool keep = true) {
  const auto closed = harness->Grant({.command = kCommand,
                                      .step = GlobalStep(step),
                                      .learning_rate = 1,
                                      .keep_values = keep,
                                      .keep_slots = keep});
  const uint64_t push_seq = static_cast<uint64_t>(step) + 1;
  harness->Push(0, push_seq, step, 0, {1});
  harness->Push(0, push_seq, step, 1, {1});
  REQUIRE(
      harness->shard
          .Push(
              Message(test::IdentityOf(0), push_seq, step).Rows(2, Shape({2, 1}), {0}, {1}).Ready())
          .ok());
  harness->Push(0, push_seq, step, 3, {7});
  REQUIRE_FALSE(closed.IsParked());
}

test::Reply<PullResult> PullAverages(Harness* harness, int64_t version) {
  test::Reply<PullResult> reply;
  harness->shard.Pull(
      {.worker = test::IdentityOf(0),
       .version = GlobalStep(version),
       .pieces = {{VariableId(0)}, {VariableId(1)}, {VariableId(2)}, {VariableId(3)}},
       .averages = true},
      reply.done());
  return reply;
}

// Of w, v, both rows of the table and the statistic.
std::vector<float> AveragesAt(Harness* harness, int64_t version) {
  const auto reply = PullAverages(harness, version);
  REQUIRE_FALSE(reply.IsParked());
  REQUIRE(reply.status().ok());
  std::vector<float> all;
  for (const PulledPiece& piece : reply->pieces) {
    const std::vector<float> values = test::ValuesOf(piece);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::string Save(Harness* harness, const std::string& root, int64_t version) {
  const std::string folder = CheckpointFolder(root, version);
  const auto saved = harness->shard.Save(kCommand, GlobalStep(version), folder);
  REQUIRE(saved.ok());
  return test::Committed(root, version, "sgd", {*saved});
}

TEST_CASE("averages follow the trained variables from their initial values") {
  Harness harness(AveragedPlan());
  Step(&harness, 0);
  CHECK(AveragesAt(&harness, 1) == std::vector<float>{3.5f, 3.5f, 3.5f, 4, 7});
  Step(&harness, 1);
  CHECK(AveragesAt(&harness, 2) == std::vector<float>{2.75f, 2.75f, 2.75f, 4, 7});
  CHECK(AveragesAt(&harness, 1) == std::vector<float>{3.5f, 3.5f, 3.5f, 4, 7});
  CHECK(harness.Read(2, 0) == std::vector<float>{2});
}

TEST_CASE("a variable that is not named has no average, and is read as it is") {
  Harness harness(AveragedPlan({"v"}));
  Step(&harness, 0);
  CHECK(AveragesAt(&harness, 1) == std::vector<float>{3, 3.5f, 3, 4, 7});
}

TEST_CASE("num_updates counts the step that was just made") {
  CreateVariablesRequest plan = AveragedPlan();
  plan.mutable_optimizer()->mutable_variable_averages()->set_decay(.999f);
  plan.mutable_optimizer()->mutable_variable_averages()->set_num_updates(true);
  Harness harness(plan);
  Step(&harness, 0);
  CHECK(AveragesAt(&harness, 1)[0] == 4 - (1 - 2.0f / 11.0f));
}

TEST_CASE("averages are read only of versions that are kept") {
  Harness harness(AveragedPlan());
  Step(&harness, 0, /*keep=*/false);
  for (const int64_t version : {0, 1, 2}) {
    const auto reply = PullAverages(&harness, version);
    REQUIRE_FALSE(reply.IsParked());
    CHECK(absl::IsFailedPrecondition(reply.status()));
    CHECK(absl::StrContains(reply.status().message(), "is not kept"));
  }
  Step(&harness, 1);
  CHECK(AveragesAt(&harness, 2)[0] == 2.75f);
  REQUIRE(harness.shard.ReleaseSnapshot(kCommand, GlobalStep(2)).ok());
  CHECK(absl::IsFailedPrecondition(PullAverages(&harness, 2).status()));
}

TEST_CASE("a checkpoint has the averages, and training goes on with them") {
  const TemporaryFolder root;
  Harness original(AveragedPlan({"v"}));
  Step(&original, 0);
  const std::string folder = Save(&original, root.path(), 1);
  const auto reader = CheckpointReader::Open(folder);
  REQUIRE(reader.ok());
  CHECK(reader->Read("v/ExponentialMovingAverage")->as<float>()[0] == 3.5f);
  CHECK_FALSE(reader->Has("w/ExponentialMovingAverage"));
  Step(&original, 1);

  CreateVariablesRequest plan = AveragedPlan({"v"});
  plan.set_restore_from(folder);
  plan.set_start_step(1);
  Harness restored(plan);
  Step(&restored, 1);
  CHECK(AveragesAt(&restored, 2) == AveragesAt(&original, 2));
}

TEST_CASE("a job that begins to average with a checkpoint starts from the values there") {
  const TemporaryFolder root;
  Harness original(AveragedPlan({"v"}));
  Step(&original, 0);
  CreateVariablesRequest plan = AveragedPlan();
  plan.set_restore_from(Save(&original, root.path(), 1));
  plan.set_start_step(1);
  Harness restored(plan);
  Step(&restored, 1);
  CHECK(AveragesAt(&restored, 2) == std::vector<float>{2.5f, 2.75f, 2.5f, 4, 7});
}

TEST_CASE("a decay that is none is refused") {
  for (const float decay : {0.0f, 1.0f, -1.0f}) {
    CreateVariablesRequest plan = AveragedPlan();
    plan.mutable_optimizer()->mutable_variable_averages()->set_decay(decay);
    Shard shard(ShardOptions{});
    REQUIRE(shard.SetView(test::ViewOf(1)).ok());
    const absl::Status status = shard.CreateVariables(plan).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), "variable_averages.decay"));
  }
}

}  // namespace
}  // namespace lockstep::ps
