// A pair whose chief is replaced by another one, or late.
#include "chief/copies/pair_watch.h"

#include <catch2/catch.hpp>

#include "common/base/lost_variables.h"
#include "tests/unit/chief/copies/pair_fixture.h"

namespace lockstep::chief {
namespace {

// What another chief has made of a place.
void TakeOver(SimplePs* ps, uint64_t epoch) {
  ps->state.set_term(2);
  ps->state.set_epoch(epoch);
  ps->refusal = absl::AbortedError("term 1 is over: the shard is in term 2");
}

// Every call of a chief that another one has replaced ends so: exit code 80.
void CheckReplaced(PairFixture* f) {
  CHECK(absl::IsAborted(f->Call(kCommitStep, CommitStepRequest()).status()));
  CHECK(absl::IsAborted(f->Call(kSetView, f->View(1)).status()));
  CHECK(absl::IsAborted(f->Call(kCreateVariables, PairFixture::Variables()).status()));
  CHECK(absl::IsAborted(f->Call(kRenewLease, RenewLeaseRequest()).status()));
}

TEST_CASE("a chief whose order to promote is refused hears that another one commands") {
  PairFixture f;
  f.Begin();
  TakeOver(f.copy(), 1);
  f.home.is_away = true;
  // It was asked before that.
  f.copy()->state.set_term(1);
  f.Pass(absl::Seconds(1));
  CheckReplaced(&f);
}

TEST_CASE("a chief whose order to go on alone is refused hears that another one commands") {
  PairFixture f;
  f.Begin();
  TakeOver(&f.home, 1);
  f.home.state.set_term(1);
  f.copy()->is_away = f.host_main.is_away = true;
  f.Pass(absl::Seconds(1));
  CheckReplaced(&f);
}

TEST_CASE("a chief that sees a higher term at a place hears that another one commands") {
  PairFixture f;
  f.Begin();
  SECTION("of the epoch") { TakeOver(f.copy(), 1); }
  SECTION("with another epoch at both") {
    f.home.StartAgain();
    f.copy()->StartAgain();
    for (SimplePs* ps : {&f.home, f.copy()}) {
      ps->state.set_job(7);
      TakeOver(ps, 2);
    }
  }
  f.Pass(absl::Milliseconds(500));
  CheckReplaced(&f);
}

TEST_CASE("an order that comes to a copy too late loses no shard") {
  PairFixture f;
  f.Begin();
  f.home.keeps_copy = true;
  CHECK(absl::IsUnavailable(f.Call(kCommitStep, CommitStepRequest()).status()));
  f.home.keeps_copy = false;
  f.Pass(absl::Seconds(3));
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
  CHECK(f.Call(kCommitStep, CommitStepRequest()).ok());
}

TEST_CASE("a chief that stood still deposes no ps that answers after the other one") {
  PairFixture f;
  f.Begin();
  SimplePs* const late = GENERATE(true, false) ? &f.home : f.copy();
  late->holds = true;
  f.Pass(absl::Milliseconds(500));
  f.StandStill();
  f.Pass(absl::Milliseconds(500));
  CHECK(f.pair.roles().IsGuarded());
  late->holds = false;
  late->Release();
  f.Pass(PairFixture::kPatience);
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("a ps that is silent before and after the chief stood still is lost") {
  PairFixture f;
  f.Begin();
  f.home.hangs = true;
  f.Pass(PairFixture::kPatience / 2);
  f.StandStill();
  f.Pass(PairFixture::kPatience / 4);
  CHECK(f.pair.roles().serving() == kHome);
  f.Pass(PairFixture::kPatience / 2);
  CHECK(f.pair.roles().serving() == kHost);
}

TEST_CASE("a ps that leaves one question without an answer, and answers the next, is not lost") {
  PairFixture f;
  f.Begin();
  SimplePs* const slow = GENERATE(true, false) ? &f.home : f.copy();
  slow->unanswered = 1;
  f.Pass(2 * PairFixture::kPatience);
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("a ps that refuses one question, and takes long for the next, is not lost") {
  PairFixture f;
  f.Begin();
  SimplePs* const slow = GENERATE(true, false) ? &f.home : f.copy();
  slow->failures = 1;
  f.Pass(absl::Milliseconds(100));
  REQUIRE(slow->failures == 0);
  slow->unanswered = 1;
  f.Pass(PairFixture::kPatience / 2);
  CHECK(slow->unanswered == 0);
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("an answer that a later one overtook says nothing of the ps any more") {
  PairFixture f;
  f.Begin();
  f.copy()->unanswered = 1;
  f.Pass(PairFixture::kPatience);
  SECTION("of a ps that keeps its state") { f.copy()->Answer(SetViewReply()); }
  SECTION("of a deadline") {
    f.copy()->Answer(absl::DeadlineExceededError("no answer within the deadline"));
  }
  SECTION("of a connection") { f.copy()->Answer(absl::UnavailableError("connection reset")); }
  f.Pass(PairFixture::kPatience);
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
}

// The home was away, so the copy was told to serve, and its answer is lost. The home is back.
void LosePromotionsAnswer(PairFixture* f) {
  f->Begin();
  f->home.is_away = true;
  f->copy()->loses_answers = true;
  f->Pass(absl::Seconds(1));
  f->home.is_away = false;
}

TEST_CASE(
    "a copy that may have obeyed the order to serve is told again, also if the home is back") {
  PairFixture f;
  LosePromotionsAnswer(&f);
  f.Pass(absl::Seconds(1));
  // The two would serve at the same time.
  CHECK(f.home.orders.size() == 1);
  CHECK(absl::IsUnavailable(f.Call(kCommitStep, CommitStepRequest()).status()));
  f.copy()->loses_answers = false;
  f.Pass(absl::Milliseconds(500));
  CHECK(f.pair.roles().serving() == kHost);
  CHECK(f.pair.roles().IsAlone());
  CHECK(f.Call(kCommitStep, CommitStepRequest()).ok());
}

TEST_CASE("a home that may have gone on alone is told again, and its copy never serves") {
  PairFixture f;
  f.Begin();
  f.copy()->is_away = f.host_main.is_away = true;
  f.home.loses_answers = true;
  f.Pass(absl::Seconds(1));
  f.copy()->is_away = f.host_main.is_away = false;
  f.home.is_away = true;
  f.Pass(absl::Seconds(3));
  CHECK(f.copy()->orders.back().role() == COPY);
  CHECK(f.pair.roles().serving() == kHome);
  SECTION("it answers") {
    f.home.is_away = f.home.loses_answers = false;
    f.Pass(absl::Milliseconds(500));
    CHECK(f.Call(kCommitStep, CommitStepRequest()).ok());
  }
  SECTION("it was started again: the shard is lost") {
    f.home.StartAgain();
    f.home.loses_answers = false;
    f.Pass(absl::Milliseconds(500));
    CHECK(HasLostVariables(f.Call(kCommitStep, CommitStepRequest()).status()));
  }
}

TEST_CASE("a copy that may have served and is started again takes the shard with it") {
  PairFixture f;
  LosePromotionsAnswer(&f);
  f.copy()->is_away = true;
  f.RestartHost();
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().state() == PairState::kLost);
  CHECK(HasLostVariables(f.Call(kCommitStep, CommitStepRequest()).status()));
}

TEST_CASE("the end of the job reaches both while a change is not decided") {
  PairFixture f;
  LosePromotionsAnswer(&f);
  CHECK(f.Call(kFinish, FinishRequest()).ok());
  f.Pass(absl::Milliseconds(200));
  CHECK(f.home.finished == 1);
  CHECK(f.copy()->finished == 1);
}

TEST_CASE("the copy hears the end of the job although its primary does not answer") {
  PairFixture f;
  f.Begin();
  f.home.is_away = true;
  CHECK(absl::IsUnavailable(f.Call(kFinish, FinishRequest()).status()));
  f.Pass(absl::Milliseconds(200));
  CHECK(f.copy()->finished == 1);
  // The caller of the pair has yet to tell the primary, or gives up.
  CHECK(f.pair.DescribeUnfinished().empty());
}

TEST_CASE("a chief that was replaced finds the shard when it looks again") {
  PairFixture f;
  f.Begin();
  TakeOver(f.copy(), 1);
  f.home.is_away = true;
  f.Pass(absl::Seconds(1));
  f.copy()->refusal = absl::OkStatus();
  f.copy()->state.set_role(PRIMARY);
  f.copy()->state.set_has_copy(false);
  const auto view = f.Call(kGetView, GetViewRequest());
  REQUIRE(view.ok());
  CHECK(view->term() == 2);
  CHECK(f.pair.roles().serving() == kHost);
  REQUIRE(f.Call(kSetView, f.View(1, 3)).ok());
  CHECK(f.pair.roles().IsAlone());
}

}  // namespace
}  // namespace lockstep::chief
