// What a job whose workers come and go asks of StepLoop.
#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "chief/sync/step_loop.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

struct Fixture {
  Fixture() {
    StepLoopOptions options;
    options.end = GlobalStep(10);
    options.required_of = [this](GlobalStep step) { return step == GlobalStep(0) ? first : 5; };
    options.learning_rate = [](GlobalStep) { return 1.0f; };
    options.keep = [](GlobalStep) { return Keep(); };
    loop.emplace(
        options, std::vector<PsControl*>{&shards[0], &shards[1]}, &executor, &clock,
        [](const CommittedStep&) {}, [](const absl::Status&) {});
    loop->Start();
    executor.Run();
  }
  // Both shards close their first parked step, and the step shard commits it.
  void CloseStep() {
    for (ScriptedPs& shard : shards) {
      GrantReply reply;
      reply.set_step(shard.grants.at(0).step());
      reply.set_shard_step(reply.step() + 1);
      shard.grants.Answer(reply, 0);
    }
    executor.Run();
    shards[0].commits.Answer(CommitStepReply());
    executor.Run();
  }
  std::vector<int64_t> Parked(size_t shard) {
    std::vector<int64_t> steps;
    for (size_t i = 0; i < shards[shard].grants.size(); ++i) {
      steps.push_back(shards[shard].grants.at(i).step());
    }
    return steps;
  }

  uint32_t first = 2;  // gradients of step 0
  std::array<ScriptedPs, 2> shards;
  ManualExecutor executor;
  ManualClock clock;
  std::optional<StepLoop> loop;
};

using Steps = std::vector<int64_t>;

TEST_CASE("nothing is granted from a step on that is held, and then all that is due") {
  Fixture f;
  CHECK(f.loop->next_grant() == GlobalStep(2));
  f.loop->HoldFrom(GlobalStep(2));
  f.CloseStep();
  CHECK(f.Parked(0) == Steps{1});
  f.CloseStep();
  CHECK(f.loop->global_step() == GlobalStep(2));
  CHECK(f.Parked(0).empty());
  CHECK(f.loop->next_grant() == GlobalStep(2));
  f.loop->HoldFrom(std::nullopt);
  f.executor.Run();
  CHECK(f.Parked(0) == Steps{2, 3});
  CHECK(f.Parked(1) == Steps{2, 3});
  CHECK(f.loop->next_grant() == GlobalStep(4));
  f.CloseStep();
  CHECK(f.loop->global_step() == GlobalStep(3));
}

TEST_CASE("each step may need gradients of its own number, which may change") {
  Fixture f;
  auto& grants = f.shards[1].grants;
  REQUIRE(grants.size() == 2);
  CHECK(grants.at(0).required() == 2);
  CHECK(grants.at(1).required() == 5);
  f.loop->UpdateRequired();
  CHECK(grants.size() == 2);
  f.first = 1;
  f.loop->UpdateRequired();
  REQUIRE(grants.size() == 3);
  CHECK(grants.at(2).step() == 0);
  CHECK(grants.at(2).required() == 1);
}

}  // namespace
}  // namespace lockstep::chief
