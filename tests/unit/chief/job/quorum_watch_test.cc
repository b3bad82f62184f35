#include "chief/job/quorum_watch.h"

#include <catch2/catch.hpp>

#include "common/base/clock.h"

namespace lockstep::chief {
namespace {

// Two workers with a token queue; each step takes two gradients.
struct Fixture {
  Fixture() {
    for (uint32_t worker : {0, 1}) {
      membership.Adopt({WorkerIndex(worker), Incarnation(10 + worker)}, absl::ZeroDuration());
    }
  }

  // What the step shard says: so many variables are open, so many workers wait for a token. The
  // names of the variables decide nothing.
  void Say(uint32_t open, uint32_t waiting, bool reaches_all = true) {
    ShardProgress progress;
    progress.set_open_variables(open);
    progress.set_waiting_dequeues(waiting);
    watch.AddProgress(kStep, {progress}, reaches_all);
  }
  bool IsShort() { return watch.Evaluate(kStep).is_short; }

  static constexpr GlobalStep kStep{3};
  Membership membership{{"127.0.0.1:1", "127.0.0.1:2"}, absl::Seconds(5)};
  ManualClock clock;
  ViewKeeper views{SetViewRequest(), {},     {},    nullptr,
                   &clock,           &clock, [] {}, [](const absl::Status&) {}};
  QuorumWatch watch{
      {.aggregate = 2, .counts_tokens = true, .tokens_per_step = 2}, &membership, &views};
};

TEST_CASE("two answers in a row that find every worker waiting prove that a step is stalled") {
  Fixture f;
  CHECK_FALSE(f.IsShort());
  f.Say(1, 2);
  CHECK_FALSE(f.IsShort());
  f.Say(1, 2);
  CHECK(f.IsShort());
}

TEST_CASE("a worker that does not wait, or a step that nothing holds up, is no stall") {
  Fixture f;
  for (int i = 0; i < 3; ++i) {
    f.Say(1, 1);
    f.Say(0, 2);
    f.Say(1, 2, /*reaches_all=*/false);
  }
  CHECK_FALSE(f.IsShort());
}

TEST_CASE("an answer in between, a change of members and another step begin the count anew") {
  Fixture f;
  f.Say(1, 2);
  f.Say(0, 2);
  f.Say(1, 2);
  CHECK_FALSE(f.IsShort());
  REQUIRE(f.membership.Leave(WorkerIndex(1), Incarnation(11), absl::ZeroDuration()).ok());
  f.Say(1, 2);
  CHECK_FALSE(f.IsShort());
  f.Say(1, 2);
  CHECK(f.IsShort());
  CHECK_FALSE(f.watch.Evaluate(f.kStep.next()).is_short);
}

TEST_CASE("shards that do not answer prove nothing") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.watch.AddProgress(f.kStep, {std::nullopt}, true);
  CHECK_FALSE(f.IsShort());
}

}  // namespace
}  // namespace lockstep::chief
