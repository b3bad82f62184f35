// A standby that finds no ps and the last checkpoint, and looks whether the job is still done.
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/job/standby.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kPatience = absl::Seconds(60);

struct Fixture {
  Fixture()
      : standby({.chiefs = {"127.0.0.1:4", "127.0.0.1:5"},
                 .step_shard = "ps 0 (127.0.0.1:1)",
                 .patience = kPatience,
                 .is_done = true},
                WatchCommandRequest(), &ps, &executor, &clock,
                {.take_command = [] {},
                 .on_end = [this](absl::Status end) { ended = std::move(end); },
                 .find_end =
                     [this](Callback<std::string> done) { looks.push_back(std::move(done)); }}) {
    standby.Start();
  }

  // Nobody listens at the ps for so long.
  void Refuse(absl::Duration time) {
    for (absl::Duration t; t < time && !ended.has_value(); t += absl::Milliseconds(100)) {
      if (ps.watches.size() > 0) ps.watches.Answer(absl::UnavailableError("connection refused"));
      Pass(absl::Milliseconds(100));
    }
  }
  // The ps is there, and no chief has called it.
  void AnswerNone() {
    while (ps.watches.size() == 0) Pass(absl::Milliseconds(100));
    WatchCommandReply reply;
    reply.mutable_command()->set_state(CommandStatus::NONE);
    ps.watches.Answer(std::move(reply));
    executor.Run();
  }
  void Pass(absl::Duration time) {
    executor.Run();
    clock.Advance(time);
    standby.Tick();
    executor.Run();
  }
  // Nobody listens: what is under way fails, and what it waits for is over.
  void EndsWhenRefused() {
    CHECK_FALSE(ended.has_value());
    Refuse(absl::Milliseconds(500));
    CHECK(ended == absl::OkStatus());
  }
  // The answer to the only look under way.
  void AnswerLook(absl::StatusOr<std::string> checkpoint) {
    REQUIRE(looks.size() == 1);
    Callback<std::string> done = std::move(looks.front());
    looks.clear();
    done(std::move(checkpoint));
    executor.Run();
  }

  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  std::vector<Callback<std::string>> looks;
  std::optional<absl::Status> ended;
  Standby standby;
};

TEST_CASE("a standby whose ps is gone ends when the last checkpoint is still there") {
  Fixture f;
  f.Refuse(absl::Seconds(3));
  f.AnswerLook("ckpt-4");
  f.EndsWhenRefused();
}

TEST_CASE("a standby whose ps is back before the look has ended stands by") {
  Fixture f;
  f.Refuse(absl::Seconds(3));
  f.AnswerNone();
  f.AnswerLook("ckpt-4");
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.standby.is_waiting());
  // Until it is gone again.
  f.Pass(absl::Milliseconds(100));
  f.Refuse(absl::Seconds(3));
  f.AnswerLook("ckpt-4");
  f.EndsWhenRefused();
}

// It has no answer for a chief that nobody has called yet.
TEST_CASE("a standby whose call a ps has taken before the look has ended stands by") {
  Fixture f;
  f.Refuse(absl::Seconds(3));
  while (f.ps.watches.size() == 0) f.Pass(absl::Milliseconds(100));
  f.AnswerLook("ckpt-4");
  f.Pass(absl::Seconds(5));
  CHECK_FALSE(f.ended.has_value());
  f.ps.watches.Answer(absl::DeadlineExceededError("deadline"));
  f.Pass(absl::Seconds(1));
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.standby.is_waiting());
}

TEST_CASE("a standby that cannot read the folder looks again") {
  Fixture f;
  f.Refuse(absl::Seconds(3));
  for (int times = 0; times < 3; ++times) {
    f.AnswerLook(absl::InternalError("OWNER.json: read: EIO"));
    CHECK_FALSE(f.ended.has_value());
    f.Refuse(absl::Seconds(1));
  }
  SECTION("and ends when the checkpoint is there") {
    f.AnswerLook("ckpt-4");
    f.EndsWhenRefused();
  }
  SECTION("and stands by when it is gone") {
    f.AnswerLook("");
    f.Refuse(absl::Seconds(3));
    CHECK(f.looks.empty());
    CHECK_FALSE(f.ended.has_value());
    f.Refuse(kPatience);
    REQUIRE(f.ended.has_value());
    CHECK_THAT(std::string(f.ended->message()), Contains("ps 0 (127.0.0.1:1) was not reached"));
  }
}

TEST_CASE("a standby that cannot learn whether the job is done ends with the disk's error") {
  Fixture f;
  const bool hangs = GENERATE(false, true);
  CAPTURE(hangs);
  f.Refuse(absl::Seconds(3));
  if (!hangs) f.AnswerLook(absl::InternalError("OWNER.json: read: EIO"));
  f.Refuse(kPatience);
  REQUIRE(f.ended.has_value());
  CHECK(absl::IsUnavailable(*f.ended));
  CHECK_THAT(std::string(f.ended->message()),
             Contains("ps 0 (127.0.0.1:1)") &&
                 Contains(hangs ? "no answer" : "OWNER.json: read: EIO") &&
                 Contains("Remedy: see that this host can read checkpoint.folder"));
}

}  // namespace
}  // namespace lockstep::chief
