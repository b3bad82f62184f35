#include "chief/recovery/shard_initializer.h"

#include <catch2/catch.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/version.h"
#include "tests/unit/chief/recovery/initializer_fixture.h"

namespace lockstep::chief {
namespace {

using test::Options;
using test::Seen;
using test::Trained;
using Fixture = test::InitializerFixture;

TEST_CASE("a chief that may not command changes no shard") {
  Fixture f;
  f.before = absl::FailedPreconditionError("another job's folder");
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
  CHECK(f.asked.empty());
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 9)));
  CHECK(f.asked == std::vector<std::string>{"before 10"});
  CHECK(f.a.set_view.size() == 0);
  REQUIRE(f.result.has_value());
  CHECK(f.result->status() == f.before);
}

TEST_CASE("what a chief must own it takes once the step shard has accepted its term") {
  Fixture f;
  f.accepted = absl::AbortedError("another chief's folder");
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 9)));
  CHECK(f.asked == std::vector<std::string>{"before 10"});
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  CHECK(f.asked == std::vector<std::string>{"before 10", "accepted 10"});
  CHECK(f.b.set_view.size() == 0);
  REQUIRE(f.result.has_value());
  CHECK(f.result->status() == f.accepted);
}

TEST_CASE("no shard is told anything while a chief does not know yet whether it may command") {
  Fixture f;
  f.hooks_hang = true;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 9)));
  f.initializer.Tick();
  CHECK(f.a.set_view.size() == 0);
  std::exchange(f.hanging, nullptr)(absl::OkStatus());
  REQUIRE(f.a.set_view.size() == 1);
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  f.initializer.Tick();
  CHECK(f.b.set_view.size() == 0);
  std::exchange(f.hanging, nullptr)(absl::OkStatus());
  CHECK(f.b.set_view.size() == 1);
  CHECK_FALSE(f.result.has_value());
}

TEST_CASE("shards are asked, then commanded under the next term, then given their variables") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
  CHECK(f.a.set_view.size() == 0);
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 9)));
  // The step shard first: of two chiefs with one term it takes one.
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.b.set_view.size() == 0);
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  REQUIRE(f.b.set_view.size() == 1);
  const SetViewRequest view = f.b.set_view.front();
  CHECK(view.command().job() == 77);
  CHECK(view.command().term() == 10);
  CHECK(view.command().chief() == 9);
  CHECK(view.version() == kVersion);
  CHECK(view.epoch() == 3);
  CHECK(view.shard() == 1);
  CHECK(view.members_size() == 0);
  CHECK(f.a.create.size() == 0);
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  REQUIRE(f.a.create.size() == 1);
  CHECK(f.a.create.front().command().term() == 10);
  CHECK(f.a.create.front().seed() == 5);
  CHECK(f.a.create.front().start_step() == 40);
  CreateVariablesReply created;
  created.set_bytes(100);
  f.Answer(&f.a.create, absl::StatusOr<CreateVariablesReply>(created));
  created.set_bytes(50);
  f.Answer(&f.b.create, absl::StatusOr<CreateVariablesReply>(created));
  REQUIRE(f.result.has_value());
  REQUIRE(f.result->ok());
  CHECK((*f.result)->bytes == std::vector<int64_t>{100, 50});
  CHECK((*f.result)->view.command().job() == 77);
}

TEST_CASE("a shard that cannot be reached is named and asked again") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.b.get_view,
           absl::StatusOr<SetViewReply>(absl::UnavailableError("ps 1 (b:2) is not available")));
  CHECK(f.initializer.DescribeWaiting() == "ps 1 (b:2) is not available");
  f.Pass(absl::Seconds(1));
  REQUIRE(f.b.get_view.size() == 1);
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  // It took a second: both are asked anew.
  for (ScriptedPs* ps : {&f.a, &f.b}) {
    f.Answer(&ps->get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  }
  CHECK(f.a.set_view.size() == 1);
}

TEST_CASE("a shard that has answered hears of the chief while another one is waited for") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.initializer.Tick();
  CHECK(f.a.get_view.size() == 0);
  for (int times = 0; times < 3; ++times) {
    f.Pass(absl::Seconds(3));
    REQUIRE(f.a.get_view.size() == 1);
    f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  }
  CHECK(f.b.get_view.all().size() == 1);
  CHECK_FALSE(f.result.has_value());
}

TEST_CASE("what waits for variables is told which are not initialised") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  f.Answer(&f.a.create, absl::StatusOr<CreateVariablesReply>(CreateVariablesReply()));
  CHECK(f.initializer.DescribeWaiting() ==
        "ps 1 (b:2) has not answered yet; not initialised: layer1, layer2, layer3, layer4 and 2 "
        "more");
  f.Answer(&f.b.create, absl::StatusOr<CreateVariablesReply>(CreateVariablesReply()));
  CHECK(f.initializer.DescribeWaiting().empty());
}

TEST_CASE("a shard that refuses ends it") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(SetViewReply()));
  f.Answer(&f.b.set_view,
           absl::StatusOr<SetViewReply>(absl::FailedPreconditionError("ps 1 (b:2): this is ps 2")));
  REQUIRE(f.result.has_value());
  CHECK(f.result->status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("a chief that finds its job named by another one meanwhile looks again") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(absl::FailedPreconditionError("job 55")));
  CHECK_FALSE(f.result.has_value());
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(55, 1)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.a.set_view.front().command().job() == 55);
  CHECK(f.a.set_view.front().command().term() == 2);
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(absl::FailedPreconditionError("job 56")));
  REQUIRE(f.result.has_value());
  CHECK(absl::IsFailedPrecondition(f.result->status()));
}

TEST_CASE("a step shard that refuses a chief and still has no job ends it") {
  Fixture f;
  for (int asked = 0; asked < 2; ++asked) {
    CHECK_FALSE(f.result.has_value());
    f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
    f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
    REQUIRE(f.a.set_view.size() == 1);
    f.Answer(&f.a.set_view,
             absl::StatusOr<SetViewReply>(absl::FailedPreconditionError("this is ps 1")));
  }
  REQUIRE(f.result.has_value());
  CHECK(f.result->status().message() == "this is ps 1");
  CHECK(f.b.set_view.all().empty());
}

// Is told by the step shard that another chief has its term.
void FindTermTaken(Fixture* f) {
  f->Answer(&f->a.get_view, absl::StatusOr<SetViewReply>(Trained(5)));
  f->Answer(&f->b.get_view, absl::StatusOr<SetViewReply>(Trained(5)));
  f->Answer(&f->a.set_view, absl::StatusOr<SetViewReply>(absl::AbortedError("another chief's")));
}

TEST_CASE("a chief whose term the step shard gave to another one looks again, once, no standby") {
  const bool is_standby = GENERATE(false, true);
  RecoverySpec spec = Options();
  if (is_standby) spec.mode = StartMode::kSucceed;
  Fixture f(spec);
  FindTermTaken(&f);
  CHECK(f.result.has_value() == is_standby);
  if (!is_standby) FindTermTaken(&f);
  REQUIRE(f.result.has_value());
  CHECK(ExitCodeFor(f.result->status()) == ExitCode::kFenced);
  CHECK(f.b.set_view.all().empty());
}

TEST_CASE("a chief that looks again and finds a ps without variables goes back as it was told to") {
  RecoverySpec spec = Options();
  spec.mode = StartMode::kResume;
  spec.variables.set_restore_from("ckpt-40");
  Fixture f(spec);
  FindTermTaken(&f);
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(60)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(55, 2)));
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(Seen(55, 3, 4)));
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(Seen(55, 3, 4)));
  REQUIRE(f.a.create.size() == 1);
  CHECK(f.a.create.front().restore_from() == "ckpt-40");
}

TEST_CASE("shards of which only some have trained are set back by a chief that resumes") {
  RecoverySpec spec = Options();
  spec.mode = StartMode::kResume;
  spec.variables.set_restore_from("/c/ckpt-40");
  Fixture f(spec);
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(60)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(55, 2, 3)));
  CHECK(f.a.set_view.front().epoch() == 4);
  CHECK(f.a.set_view.front().members_size() == 0);
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(Seen(55, 3, 4)));
  CHECK(f.b.set_view.front().epoch() == 4);
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(Seen(55, 3, 4)));
  for (ScriptedPs* ps : {&f.a, &f.b}) {
    REQUIRE(ps->create.size() == 1);
    CHECK(ps->create.front().restore_from() == "/c/ckpt-40");
    CHECK(ps->create.front().start_step() == 40);
  }
}

TEST_CASE(
    "a chief that comes while another one makes steps looks again, and goes on from its steps") {
  RecoverySpec spec = Options();
  spec.mode = GENERATE(StartMode::kSucceed, StartMode::kResume);
  Fixture f(spec);
  const auto answer = [&f](int64_t first, int64_t second) {
    f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(first)));
    f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Trained(second)));
  };
  answer(65, 60);
  CHECK(f.a.set_view.size() == 0);
  CHECK_FALSE(f.result.has_value());
  answer(75, 68);
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.a.set_view.front().epoch() == 3);
  // Under its command no step is made.
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(Trained(76)));
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(Trained(76)));
  CHECK(f.initializer.takes_over());
  REQUIRE(f.a.create.size() == 1);
  CHECK(f.a.create.front().restore_from().empty());
  CHECK(f.a.create.front().start_step() == 0);
}

TEST_CASE("a chief asks again before it begins anew on answers that are old") {
  RecoverySpec spec = Options();
  spec.mode = GENERATE(StartMode::kSucceed, StartMode::kResume);
  Fixture f(spec);
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.clock.Advance(absl::Seconds(5));  // this chief is stopped, too
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  CHECK(f.a.set_view.size() == 0);
  CHECK_FALSE(f.result.has_value());
  // The chief before was only stopped, and has made the shards meanwhile.
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(45)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Trained(45)));
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.a.set_view.front().epoch() == 3);
}

TEST_CASE("a chief asks again before it begins anew after a disk that took long") {
  Fixture f;
  f.hooks_hang = true;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 9)));
  f.clock.Advance(absl::Seconds(5));
  std::exchange(f.hanging, nullptr)(absl::OkStatus());
  CHECK(f.a.set_view.size() == 0);
  f.hooks_hang = false;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 4)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 11)));
  REQUIRE(f.a.set_view.size() == 1);
  CHECK(f.a.set_view.front().command().term() == 12);
  CHECK(f.asked == std::vector<std::string>{"before 10", "before 12"});
}

TEST_CASE("a chief begins anew where every answer of a shard is old") {
  RecoverySpec spec = Options();
  spec.mode = StartMode::kResume;
  Fixture f(spec);
  for (int asking = 0; asking < 4; ++asking) {
    CHECK(f.a.set_view.size() == 0);
    f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
    f.clock.Advance(absl::Seconds(5));
    f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  }
  CHECK(f.a.set_view.size() == 1);
}

TEST_CASE("a chief that twice finds the same steps apart does not go on from them") {
  RecoverySpec spec = Options();
  spec.mode = StartMode::kSucceed;
  Fixture f(spec);
  for (int look = 0; look < 2; ++look) {
    CHECK_FALSE(f.result.has_value());
    f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(65)));
    f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Trained(60)));
  }
  REQUIRE(f.result.has_value());
  REQUIRE(f.result->ok());
  CHECK((*f.result)->start == StartPoint::kPlanAfresh);
  CHECK(f.a.set_view.size() == 0);
}

TEST_CASE("without --resume shards of which only some have trained are left alone") {
  Fixture f;
  f.Answer(&f.a.get_view, absl::StatusOr<SetViewReply>(Trained(60)));
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.Answer(&f.a.set_view, absl::StatusOr<SetViewReply>(Trained(60)));
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(Seen(55, 3)));
  CHECK(f.a.finishes.size() == 0);
  REQUIRE(f.result.has_value());
  CHECK(ExitCodeFor(f.result->status()) == ExitCode::kBadConfiguration);
}

TEST_CASE("a job that is done waits a second for shards that may be there no more") {
  RecoverySpec spec = Options();
  spec.mode = StartMode::kResume;
  spec.variables.set_start_step(100);
  Fixture f(spec);
  f.Answer(&f.b.get_view, absl::StatusOr<SetViewReply>(Seen(0, 0)));
  f.initializer.Tick();
  CHECK(f.b.set_view.size() == 0);
  for (int phase = 0; phase < 2; ++phase) {
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.b.set_view.size() == 1);
  f.Answer(&f.b.set_view, absl::StatusOr<SetViewReply>(Seen(77, 1)));
  REQUIRE(f.result.has_value());
  REQUIRE(f.result->ok());
  CHECK((*f.result)->start == StartPoint::kDone);
  CHECK((*f.result)->view.command().job() == 77);
  CHECK(f.b.create.size() == 0);
}

}  // namespace
}  // namespace lockstep::chief
