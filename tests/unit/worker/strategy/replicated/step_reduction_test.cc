#include "worker/strategy/replicated/step_reduction.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/unit/worker/strategy/replicated/fake_reducer_source.h"

namespace lockstep::worker {
namespace {

// With a group that begins at step 5, and the reduction of step 5 under way.
struct Fixture {
  Fixture() {
    reduction.AwaitGroup([this](absl::StatusOr<ReducerOfGroup> group) { joined = group.status(); });
    first = source.Tell(5);
    Reduce(5);
  }
  ~Fixture() { source.Cancel(); }

  void Reduce(int64_t step) {
    reduced.reset();
    reduction.Reduce(GlobalStep(step), gradients, [this](absl::Status s) { reduced = s; });
  }
  void Release() {
    released.reset();
    reduction.Release([this](absl::Status s) { released = s; });
  }
  bool HasSumOf(const FakeReducer* reducer) const { return &reduction.sum() == reducer; }

  FakeReducerSource source;
  std::vector<std::vector<TensorView>> gradients;
  int prepared = 0;
  StepReduction reduction{&source, [this](const ReducerOfGroup&, StatusCallback done) {
                            ++prepared;
                            done(absl::OkStatus());
                          }};
  absl::Status joined = absl::UnknownError("not told");
  std::optional<absl::Status> reduced;
  std::optional<absl::Status> released;
  FakeReducer* first = nullptr;
};

const absl::Status kLost = absl::UnavailableError("worker 1 (host:1) is silent");

TEST_CASE("a step is reduced in the group that was told, and released at once") {
  Fixture f;
  CHECK(f.joined.ok());
  CHECK(f.first->last_step == 5);
  CHECK_FALSE(f.reduced.has_value());
  f.first->End(absl::OkStatus());
  CHECK(f.reduced == absl::OkStatus());
  f.Release();
  CHECK(f.released == absl::OkStatus());
  CHECK(f.HasSumOf(f.first));
  f.Reduce(6);
  CHECK(f.first->last_step == 6);
  CHECK(f.prepared == 0);
}

TEST_CASE("a reduction that fails is made again in the next group") {
  Fixture f;
  f.first->End(kLost);
  CHECK_FALSE(f.reduced.has_value());
  CHECK(f.source.failures.size() == 1);
  FakeReducer* const second = f.source.Tell(5);
  CHECK(f.prepared == 1);
  CHECK(second->last_step == 5);
  second->End(absl::OkStatus());
  CHECK(f.reduced == absl::OkStatus());
  f.Release();
  CHECK(f.HasSumOf(second));
}

TEST_CASE("a failure is one of the group that it happened in") {
  Fixture f;
  f.first->End(kLost);
  CHECK(f.source.failures == std::vector<GroupViewId>{f.source.View(1)});
  f.source.Tell(5)->End(kLost);
  CHECK(f.source.failures == std::vector<GroupViewId>{f.source.View(1), f.source.View(2)});
}

TEST_CASE("a reduction that somebody else cancels is made again, too") {
  Fixture f;
  f.first->End(absl::CancelledError("worker 1 was told to stop"));
  CHECK_FALSE(f.reduced.has_value());
  CHECK(f.source.failures.size() == 1);
}

TEST_CASE("a group that comes before the failure is used after it, and nothing is noted") {
  Fixture f;
  FakeReducer* const second = f.source.Tell(5);
  CHECK(second->reductions == 0);
  f.first->End(absl::AbortedError("the group has a newer view"));
  CHECK(f.source.failures.size() == 0);
  CHECK(second->reductions == 1);
}

TEST_CASE("who has the sum reduces again for a successor") {
  Fixture f;
  f.first->End(absl::OkStatus());
  FakeReducer* const second = f.source.Tell(5);
  CHECK(second->last_step == 5);
  f.Release();
  CHECK_FALSE(f.released.has_value());
  SECTION("and goes on afterwards") {
    second->End(absl::OkStatus());
    CHECK(f.released == absl::OkStatus());
    CHECK(f.HasSumOf(second));
  }
  SECTION("also when that fails: the step is closed, and the first sum is the same") {
    second->End(kLost);
    CHECK(f.released == absl::OkStatus());
    CHECK(f.HasSumOf(f.first));
    CHECK(f.source.failures.size() == 0);
    f.Reduce(6);
    CHECK(f.source.failures.size() == 1);
    CHECK(f.source.Tell(6)->last_step == 6);
  }
}

TEST_CASE("a group that begins with the next step is of the next step alone") {
  Fixture f;
  f.first->End(absl::OkStatus());
  FakeReducer* const second = f.source.Tell(6);
  CHECK(second->reductions == 0);
  f.Release();
  REQUIRE(f.released == absl::OkStatus());
  CHECK(f.HasSumOf(f.first));
  f.Reduce(6);
  CHECK(f.first->reductions == 1);
  CHECK(second->last_step == 6);
}

TEST_CASE("where groups differ in their members, only the newest one's sum counts") {
  Fixture f;
  f.first->End(absl::OkStatus());
  FakeReducer* const second = f.source.Tell(5, true);
  second->End(kLost);
  CHECK(f.source.failures.size() == 1);
  SECTION("another group mends it") {
    FakeReducer* const third = f.source.Tell(5, true);
    f.Release();
    third->End(absl::OkStatus());
    CHECK(f.released == absl::OkStatus());
    CHECK(f.HasSumOf(third));
  }
  SECTION("a step that closes meanwhile is lost here") {
    f.Release();
    REQUIRE(f.released.has_value());
    CHECK(ExitCodeFor(*f.released) == ExitCode::kPeersLost);
  }
}

TEST_CASE("the newest of several groups counts") {
  Fixture f;
  f.first->End(kLost);
  f.source.Tell(5)->End(kLost);
  FakeReducer* const third = f.source.Tell(5);
  third->End(absl::OkStatus());
  CHECK(f.reduced == absl::OkStatus());
  CHECK(f.source.failures.size() == 2);
}

TEST_CASE("reducers of older groups go while a step stays open") {
  Fixture f;
  FakeReducer* reducer = f.first;
  constexpr int kRounds = 50;
  SECTION("a group after each that fails") {
    for (int round = 0; round < kRounds; ++round) {
      reducer->End(kLost);
      reducer = f.source.Tell(5);
      REQUIRE(reducer->last_step == 5);
      REQUIRE(f.source.live.AwaitAtMost(1));
    }
  }
  SECTION("a group that has been told when the one before fails") {
    for (int round = 0; round < kRounds; ++round) {
      FakeReducer* const next = f.source.Tell(5);
      reducer->End(absl::AbortedError("the group has a newer view"));
      reducer = next;
      REQUIRE(reducer->last_step == 5);
      REQUIRE(f.source.live.AwaitAtMost(1));
    }
  }
  SECTION("groups that are over before the one that runs fails") {
    for (int round = 0; round < kRounds; ++round) {
      f.source.Tell(5);
      REQUIRE(f.source.live.AwaitAtMost(2));
    }
  }
  SECTION("beside the one that has the sum") {
    reducer->End(absl::OkStatus());
    for (int round = 0; round < kRounds; ++round) {
      f.source.Tell(5)->End(kLost);
      REQUIRE(f.source.live.AwaitAtMost(2));
    }
    f.Release();
    CHECK(f.HasSumOf(f.first));
  }
}

TEST_CASE("reducers of older groups go while a worker joins") {
  Fixture f;
  f.first->End(absl::OkStatus());
  f.Release();
  for (int round = 0; round < 50; ++round) {
    f.reduction.AwaitGroup(
        [&](absl::StatusOr<ReducerOfGroup> group) { f.joined = group.status(); });
    f.source.Tell(5);
    // The last one and the one with the sum.
    REQUIRE(f.source.live.AwaitAtMost(2));
  }
}

TEST_CASE("what another group does not mend ends the step, and so does the source") {
  Fixture f;
  SECTION("members that reduce something else") {
    f.first->End(absl::InvalidArgumentError("another step"));
    REQUIRE(f.reduced.has_value());
    CHECK(absl::IsInvalidArgument(*f.reduced));
  }
  SECTION("cancelled while a group is waited for") {
    f.first->End(kLost);
    f.source.Cancel();
    REQUIRE(f.reduced.has_value());
    CHECK(absl::IsCancelled(*f.reduced));
  }
  SECTION("cancelled while it is reduced: when the reduction has ended") {
    f.source.Cancel();
    CHECK_FALSE(f.reduced.has_value());
    f.first->End(absl::CancelledError("cancelled"));
    REQUIRE(f.reduced.has_value());
    CHECK(absl::IsCancelled(*f.reduced));
  }
}

}  // namespace
}  // namespace lockstep::worker
