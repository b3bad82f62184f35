// What a worker that joins reads of the others: every byte, from whoever has the version.
#include "worker/strategy/replicated/member_state_reader.h"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "common/base/exit_code.h"
#include "tests/support/await.h"
#include "tests/support/manual_time.h"
#include "tests/unit/worker/strategy/replicated/layout_for_tests.h"
#include "worker/peer/peer_methods.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

// Members with a state each, or an error that they answer.
class FakeMembers final : public MemberStates {
 public:
  void ReadState(int position, GlobalStep version, uint64_t offset, uint64_t size,
                 Callback<StatePiece> done) override {
    CHECK(version == GlobalStep(7));
    asked.push_back(position);
    if (on_read) on_read();
    if (errors.contains(position)) return done(errors.at(position));
    const std::vector<TensorView> tensors(views.begin(), views.end());
    done(StatePiece{.total = total.value_or(NumBytes(tensors)),
                    .scalars = {0.5f, 0.25f},
                    .bytes = ReadBytes(tensors, offset, size)});
  }

  std::function<void()> on_read;  // may be empty
  std::map<int, absl::Status> errors;
  std::vector<int> asked;
  std::vector<MutableTensorView> views;
  std::optional<uint64_t> total;
};

// To the members over a link of 70 KB/s. A call that is not over at its deadline fails.
class ThinLink final : public MemberStates {
 public:
  ThinLink(MemberStates* members, test::ManualTime* time) : members_(members), time_(time) {}
  void ReadState(int position, GlobalStep version, uint64_t offset, uint64_t size,
                 Callback<StatePiece> done) override {
    members_->ReadState(
        position, version, offset, size,
        [this, done = std::move(done)](absl::StatusOr<StatePiece> piece) mutable {
          const absl::Duration takes = absl::Seconds(1) * piece->bytes.size() / 70'000;
          if (takes > kReadState.deadline) piece = absl::DeadlineExceededError("too slow");
          time_->After(std::min(takes, kReadState.deadline),
                       [done = std::move(done), piece]() mutable { done(std::move(piece)); });
        });
  }

 private:
  MemberStates* const members_;
  test::ManualTime* const time_;
};

// 1.6 MB of variables and slots: seven pieces.
struct Fixture {
  Fixture() {
    float next = 1;
    members.views = TensorsOf(&state);
    for (const MutableTensorView& view : members.views) {
      for (float& value : view.as<float>()) value = next++;
    }
  }

  absl::StatusOr<ReplicaState> Read(int pauses = 100) { return ReadFrom(&members, pauses); }
  absl::StatusOr<ReplicaState> ReadFrom(MemberStates* states, int pauses) {
    Answer<ReplicaState> answer;
    reader.Read(GlobalStep(7), states, {0, 2}, answer.done());
    for (int i = 0; i < pauses && !answer.answered(); ++i) time.Advance(absl::Milliseconds(20));
    if (!answer.answered()) reader.Cancel();
    return answer.Wait();
  }

  OptimizerDef Adam() {
    OptimizerDef optimizer;
    optimizer.mutable_adam();
    return optimizer;
  }

  const VariableLayout layout = LayoutForTests(80'000);
  const OptimizerRules rules = *OptimizerRules::Create(Adam());
  ReplicaState state = UninitializedState(layout, rules);
  FakeMembers members;
  test::ManualTime time;
  MemberStateReader reader{layout, rules, &time, &time};
};

TEST_CASE("every variable, slot and number arrives") {
  Fixture f;
  absl::StatusOr<ReplicaState> read = f.Read();
  REQUIRE(read.ok());
  CHECK(f.members.asked == std::vector<int>(7, 0));
  CHECK(read->version == GlobalStep(7));
  CHECK(read->scalars == std::vector<float>{0.5f, 0.25f});
  REQUIRE(read->slots[0].size() == 2);
  const std::vector<MutableTensorView> got = TensorsOf(&*read);
  REQUIRE(got.size() == f.members.views.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK(std::ranges::equal(got[i].bytes(), f.members.views[i].bytes()));
  }
}

TEST_CASE("a member that has not come so far, or is gone, is passed over") {
  Fixture f;
  f.members.errors[0] = GENERATE(absl::UnavailableError("it has version 6, not 7"),
                                 absl::FailedPreconditionError("takes no part yet"),
                                 absl::DeadlineExceededError("silent"));
  CHECK(f.Read().ok());
  CHECK(f.members.asked == std::vector<int>{0, 2, 2, 2, 2, 2, 2, 2});
}

TEST_CASE("a state that takes longer on the link than any deadline arrives") {
  Fixture f;
  ThinLink link(&f.members, &f.time);
  CHECK(f.ReadFrom(&link, 2000).ok());
}

TEST_CASE("a newer view, another model, and a cancelled job end the reading") {
  Fixture f;
  SECTION("a newer view") {
    f.members.errors[0] = absl::AbortedError("the group has a newer view");
    CHECK(absl::IsAborted(f.Read().status()));
    CHECK(f.members.asked.size() == 1);
  }
  SECTION("another model") {
    f.members.total = GENERATE(uint64_t{0}, uint64_t{12}, uint64_t{1} << 40);
    const absl::Status refused = f.Read().status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()), Contains("expected 1600004 bytes"));
  }
  SECTION("nobody has it") {
    f.members.errors[0] = f.members.errors[2] = absl::UnavailableError("not yet");
    const absl::Status nobody = f.Read(1000).status();
    CHECK(ExitCodeFor(nobody) == ExitCode::kPeersLost);
    CHECK_THAT(std::string(nobody.message()), Contains("15s") && Contains("not yet"));
  }
  SECTION("cancelled") {
    f.members.errors[0] = f.members.errors[2] = absl::UnavailableError("not yet");
    CHECK(absl::IsCancelled(f.Read().status()));
    CHECK(absl::IsCancelled(f.Read().status()));
  }
}

TEST_CASE("the end is told when the members are no longer used: they may go then") {
  Fixture f;
  Answer<ReplicaState> answer;
  f.members.on_read = [&] {
    f.reader.Cancel();
    CHECK_FALSE(answer.answered());
  };
  f.reader.Read(GlobalStep(7), &f.members, {0, 2}, answer.done());
  REQUIRE(answer.answered());
  CHECK(absl::IsCancelled(answer.Wait().status()));
  CHECK(f.members.asked == std::vector<int>{0});
}

TEST_CASE("bytes of tensors are read and written from any place") {
  Fixture f;
  const std::vector<TensorView> from(f.members.views.begin(), f.members.views.end());
  ReplicaState copy = UninitializedState(f.layout, f.rules);
  const std::vector<MutableTensorView> to = TensorsOf(&copy);
  const uint64_t total = NumBytes(from);
  for (uint64_t at = 0; at < total; at += 100'003) {
    REQUIRE(WriteBytes(to, at, ReadBytes(from, at, 100'003)));
  }
  for (size_t i = 0; i < to.size(); ++i) CHECK(std::ranges::equal(to[i].bytes(), from[i].bytes()));
  CHECK(ReadBytes(from, total - 3, 10).size() == 3);
  CHECK(ReadBytes(from, total, 10).empty());
  CHECK(ReadBytes(from, ~uint64_t{0}, 10).empty());
  CHECK_FALSE(WriteBytes(to, total - 3, "four"));
  CHECK_FALSE(WriteBytes(to, ~uint64_t{0}, "four"));
}

}  // namespace
}  // namespace lockstep::worker
