// What every PsControl and PsData does, over every implementation.
#include <catch2/catch.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "tests/conformance/two_variables.h"

namespace lockstep {
namespace {

TEST_CASE("A ps is brought up by a view and its variables, each repeatable") {
  Ps ps(false);
  const auto before = ps.GetView();
  REQUIRE(before.ok());
  CHECK(before->incarnation() == 17);
  CHECK_FALSE(before->has_variables());
  CHECK(before->job() == 0);
  CHECK(absl::IsFailedPrecondition(ps.Create(Variables({3})).status()));  // no view yet
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto view = ps.SetView(TwoWorkers());
    REQUIRE(view.ok());
    CHECK(view->term() == 1);
    CHECK(view->epoch() == 1);
    CHECK(view->job() == kJob);
    const auto created = ps.Create(Variables({3, 1000}));
    REQUIRE(created.ok());
    CHECK(created->bytes() == 4012);
  }
  CHECK(ps.GetView()->has_variables());
  CHECK(ps.PullV0(0) == std::vector<float>{1, 1, 1});
}

TEST_CASE("A ps that was started again says that it has lost its variables, whoever asks first") {
  Ps ps(false);
  const bool has_view = GENERATE(false, true);
  if (has_view) REQUIRE(ps.SetView(TwoWorkers()).ok());
  const std::vector<absl::Status> answers = {
      CallAndWait(*ps.control(), kGrant, Granted(0)).status(), ps.Push(0, 0, 0, {1, 2, 3}).status(),
      ps.Pull(PullOf(0, 0, 0)).status(),
      Await<DequeueTokenReply>([&](auto done) {
        ps.data()->DequeueToken(DequeueOf(0, 1), std::move(done));
      }).status()};
  for (const absl::Status& answer : answers) {
    INFO(answer);
    CHECK(absl::IsFailedPrecondition(answer));
    CHECK(ExitCodeFor(answer) == ExitCode::kPeersLost);
    // A client of a real ps says so in its own words.
    CHECK((IsNoVariables(answer) || absl::StrContains(answer.message(), "has lost its variables")));
  }
}

TEST_CASE("An older term commands nothing") {
  Ps ps;
  REQUIRE(ps.SetView(TwoWorkers(5)).ok());
  const absl::Status old = ps.SetView(TwoWorkers(4)).status();
  CHECK(absl::IsAborted(old));
  CHECK(absl::StrContains(old.message(), "5"));
  const auto granted = CallAndWait(*ps.control(), kGrant, Granted(0));
  CHECK(absl::IsAborted(granted.status()));
}

TEST_CASE("A step closes with the mean of the gradients, and every parked call is answered") {
  Ps ps;
  Answer<GrantReply> closed;
  ps.control()->Call(kGrant, Granted(0), closed.done());
  Answer<Values> parked;
  ps.data()->Pull(PullOf(1, 1, 0), parked.done());
  Answer<DequeueTokenReply> token;
  ps.data()->DequeueToken(DequeueOf(0, 1), token.done());
  for (uint32_t worker : {0, 1}) {
    const auto small = ps.Push(worker, 0, 0, {1.f + worker, 2, 3});
    REQUIRE(small.ok());
    REQUIRE(small->outcomes_size() == 1);
    CHECK(small->outcomes(0).verdict() == ACCEPTED);
    CHECK_FALSE(closed.answered());
    REQUIRE(ps.Push(worker, 0, 1, std::vector<float>(1000, 4)).ok());
  }
  const auto reply = closed.Wait();
  REQUIRE(reply.ok());
  CHECK(reply->shard_step() == 1);
  CHECK(reply->accepted() == 4);
  const auto values = parked.Wait();
  REQUIRE(values.ok());
  CHECK((*values)->header().version() == 1);
  CHECK(ps.PullV0(1) == std::vector<float>{0.25f, 0, -0.5f});
  const auto next = token.Wait();
  REQUIRE(next.ok());
  CHECK(next->step() == 1);
  CHECK_FALSE(next->done());
  // The same question, the same token.
  const auto again = Await<DequeueTokenReply>(
      [&](auto done) { ps.data()->DequeueToken(DequeueOf(0, 1), std::move(done)); });
  REQUIRE(again.ok());
  CHECK(again->step() == 1);
}

TEST_CASE("A save that fails carries its exit code to the chief") {
  Ps ps;
  GrantRequest grant = Granted(0);
  grant.set_keep_slots(true);
  Answer<GrantReply> closed;
  ps.control()->Call(kGrant, grant, closed.done());
  for (uint32_t worker : {0, 1}) {
    REQUIRE(ps.Push(worker, 0, 0, {1, 2, 3}).ok());
    REQUIRE(ps.Push(worker, 0, 1, std::vector<float>(1000, 1)).ok());
  }
  REQUIRE(closed.Wait().ok());
  SaveRequest save;
  *save.mutable_command() = grant.command();
  save.set_version(1);
  save.set_folder("/dev/null/ckpt-1");
  const absl::Status failed = CallAndWait(*ps.control(), kSave, save).status();
  INFO(failed);
  CHECK(ExitCodeFor(failed) == ExitCode::kCannotCreate);
}

TEST_CASE("Chunks may come in any order and twice; the last one of a variable brings the verdict") {
  Ps ps;
  const auto chunk = [&](int64_t begin, int64_t end, bool ask = false) {
    PushRequest push = PushOf(0, 0, 1, 1000, begin, end);
    push.set_ask(ask);
    const auto reply =
        ps.Push(push, ask ? std::vector<float>() : std::vector<float>(end - begin, 1));
    REQUIRE(reply.ok());
    return reply->outcomes(0).verdict();
  };
  CHECK(chunk(0, 1000, true) == PENDING);
  CHECK(chunk(600, 1000) == PENDING);
  CHECK(chunk(600, 1000) == PENDING);
  CHECK(chunk(0, 300) == PENDING);
  CHECK(chunk(0, 1000, true) == PENDING);
  CHECK(chunk(300, 600) == ACCEPTED);
  CHECK(chunk(300, 600) == ACCEPTED);
  CHECK(chunk(0, 1000, true) == ACCEPTED);
}

TEST_CASE("A late gradient is told that it is stale") {
  Ps ps;
  ps.CloseStep(0);
  PushRequest late = PushOf(0, 0, 0, 3, 0, 3);
  late.set_push_seq(9);
  const auto reply = ps.Push(late, {1, 2, 3});
  REQUIRE(reply.ok());
  CHECK(reply->outcomes(0).verdict() == STALE);
  CHECK(reply->shard_step() == 1);
}

TEST_CASE("A version that is kept no longer is answered with the newest") {
  Ps ps;
  for (int64_t step : {0, 1, 2}) ps.CloseStep(step);
  const auto values = ps.Pull(PullOf(0, 0, 0));
  REQUIRE(values.ok());
  CHECK((*values)->header().version() == 3);
}

TEST_CASE("A pull answers with the pieces asked for, in their order") {
  Ps ps;
  PullRequest pull = PullOf(0, 0, 1);
  pull.mutable_pieces(0)->set_offset(3996);
  pull.add_pieces()->set_variable(0);
  PullPiece* middle = pull.add_pieces();
  middle->set_variable(1);
  middle->set_offset(400);
  middle->set_size(80);
  const auto values = ps.Pull(pull);
  REQUIRE(values.ok());
  const PullReply& header = (*values)->header();
  REQUIRE(header.pieces_size() == 3);
  CHECK(header.pieces(0).size() == 4);
  CHECK(header.pieces(1).size() == 12);
  CHECK(header.pieces(2).size() == 80);
  CHECK(header.pieces(2).offset() == 400);
  std::vector<float> a(1), b(3), c(20), wrong(21);
  const auto writable = [](std::vector<float>& floats) {
    return std::as_writable_bytes(std::span(floats));
  };
  const std::vector<std::span<std::byte>> targets = {writable(a), writable(b), writable(c)};
  REQUIRE((*values)->CopyTo(targets).ok());
  CHECK(c == std::vector<float>(20, 1));
  const std::vector<std::span<std::byte>> bad = {writable(a), writable(b), writable(wrong)};
  CHECK(absl::IsInvalidArgument((*values)->CopyTo(bad)));
}

TEST_CASE("A pull of rows brings these rows of a sparse variable, in their order") {
  Ps ps(false);
  REQUIRE(ps.SetView(TwoWorkers()).ok());
  CreateVariablesRequest variables = Variables({1000, 3});
  variables.mutable_placement()->mutable_variables(0)->set_sparse(true);
  variables.mutable_placement()->mutable_variables(0)->add_dims(2);
  REQUIRE(ps.Create(variables).ok());
  Answer<GrantReply> closed;
  ps.control()->Call(kGrant, Granted(0), closed.done());
  Answer<Values> parked;
  ps.data()->Pull(PullRowsOf(1, 1, 0, {999, 7, 7}), parked.done());
  const std::vector<int64_t> indices = {7, 999};
  const std::vector<float> slices = {2, 4, 6, 8};
  for (uint32_t worker : {0, 1}) {
    REQUIRE(ps.Push(worker, 0, 1, {0, 0, 0}).ok());
    PushRequest push = PushOf(worker, 0, 0, 1000, 0, 0);
    push.mutable_pieces(0)->add_dims(2);
    push.mutable_pieces(0)->set_rows(2);
    push.mutable_pieces(0)->set_size(32);
    const auto reply = Await<PushReply>([&](auto done) {
      ps.data()->Push(push, {std::as_bytes(std::span(indices)), BytesOf(slices)}, std::move(done));
    });
    REQUIRE(reply.ok());
  }
  REQUIRE(closed.Wait().ok());
  const auto values = parked.Wait();
  REQUIRE(values.ok());
  const PullReply& header = (*values)->header();
  REQUIRE(header.pieces_size() == 1);
  CHECK(header.version() == 1);
  CHECK(header.pieces(0).size() == 24);
  CHECK(header.pieces(0).rows_size() == 0);
  std::vector<float> rows(6);
  const std::vector<std::span<std::byte>> targets = {std::as_writable_bytes(std::span(rows))};
  REQUIRE((*values)->CopyTo(targets).ok());
  CHECK(rows == std::vector<float>{-2, -3, 0, -1, 0, -1});
  const absl::Status beyond = ps.Pull(PullRowsOf(0, 1, 0, {1000})).status();
  CHECK(absl::IsInvalidArgument(beyond));
  CHECK(absl::StrContains(beyond.message(), "\"v0\""));
  CHECK(absl::StrContains(beyond.message(), "1000"));
}

TEST_CASE("What is malformed is refused, naming it") {
  Ps ps;
  const auto code = [&](const PushRequest& push, size_t elements) {
    return ps.Push(push, std::vector<float>(elements)).status().code();
  };
  PushRequest push = PushOf(0, 0, 0, 3, 0, 3);
  CHECK(code(push, 2) == absl::StatusCode::kInvalidArgument);  // payload too short
  CHECK(code(push, 4) == absl::StatusCode::kInvalidArgument);
  push.mutable_pieces(0)->set_dtype(FLOAT64);
  CHECK(code(push, 3) == absl::StatusCode::kInvalidArgument);
  push.mutable_pieces(0)->set_dtype(DATA_TYPE_UNSPECIFIED);
  CHECK(code(push, 3) == absl::StatusCode::kInvalidArgument);
  push = PushOf(0, 0, 0, 3, 0, 3);
  push.mutable_pieces(0)->set_dims(0, -3);
  CHECK(code(push, 3) == absl::StatusCode::kInvalidArgument);
  CHECK(code(PushOf(0, 0, 0, 3, 2, 5), 3) == absl::StatusCode::kInvalidArgument);
  CHECK(code(PushOf(0, 0, 7, 3, 0, 3), 3) == absl::StatusCode::kInvalidArgument);
  CHECK(absl::IsInvalidArgument(ps.Pull(PullOf(0, 0, 7)).status()));
  PullRequest beyond = PullOf(0, 0, 0);
  beyond.mutable_pieces(0)->set_offset(8);
  beyond.mutable_pieces(0)->set_size(UINT64_MAX);
  CHECK(absl::IsInvalidArgument(ps.Pull(beyond).status()));
}

TEST_CASE("A worker of another epoch, incarnation or job changes nothing") {
  Ps ps;
  PushRequest push = PushOf(0, 0, 0, 3, 0, 3);
  push.mutable_worker()->set_epoch(2);
  CHECK(absl::IsAborted(ps.Push(push, {1, 2, 3}).status()));
  push = PushOf(0, 0, 0, 3, 0, 3);
  push.mutable_worker()->set_incarnation(1);
  CHECK(absl::IsAborted(ps.Push(push, {1, 2, 3}).status()));
  push = PushOf(0, 0, 0, 3, 0, 3);
  push.mutable_worker()->set_job(1);
  CHECK(absl::IsFailedPrecondition(ps.Push(push, {1, 2, 3}).status()));
}

TEST_CASE("The end answers tokens with done and parked calls with an error") {
  Ps ps;
  Answer<DequeueTokenReply> token;
  ps.data()->DequeueToken(DequeueOf(0, 1), token.done());
  Answer<Values> pull;
  ps.data()->Pull(PullOf(0, 5, 0), pull.done());
  // Over gRPC the calls have arrived when a later one on their connection was answered.
  REQUIRE(ps.Pull(PullOf(0, 0, 0)).ok());
  REQUIRE(CallAndWait(*ps.control(), kFinish, JobIsOver()).ok());
  const auto last = token.Wait();
  REQUIRE(last.ok());
  CHECK(last->done());
  CHECK(absl::IsCancelled(pull.Wait().status()));
}

TEST_CASE("For the next chief a ps whose job is over is gone already") {
  Ps ps;
  const auto next = ps.ps()->NewControl();
  CHECK(CallAndWait(*next, kGetView, GetViewRequest()).ok());
  REQUIRE(CallAndWait(*ps.control(), kFinish, JobIsOver()).ok());
  CHECK(absl::IsUnavailable(CallAndWait(*next, kGetView, GetViewRequest()).status()));
  CHECK(absl::IsUnavailable(CallAndWait(*next, kSetView, TwoWorkers(2)).status()));
  RenewLeaseRequest renewal;
  *renewal.mutable_command() = ChiefCommand(2);
  CHECK(absl::IsUnavailable(CallAndWait(*next, kRenewLease, renewal).status()));
}

TEST_CASE("Cancel ends what is parked and every later call, of this client alone") {
  Ps ps;
  const auto other = ps.ps()->NewData();
  Answer<Values> mine, others;
  ps.data()->Pull(PullOf(0, 1, 0), mine.done());
  other->Pull(PullOf(1, 1, 0), others.done());
  ps.data()->Cancel();
  CHECK(absl::IsCancelled(mine.Wait().status()));
  CHECK(absl::IsCancelled(ps.Pull(PullOf(0, 0, 0)).status()));
  CHECK(absl::IsCancelled(ps.Push(0, 0, 0, {1, 2, 3}).status()));
  CHECK(absl::IsCancelled(Await<DequeueTokenReply>([&](auto done) {
                            ps.data()->DequeueToken(DequeueOf(0, 1), std::move(done));
                          }).status()));
  // The ps goes on: the step closes, though one of the pulls that waited for it is gone.
  Answer<GrantReply> closed;
  ps.control()->Call(kGrant, Granted(0), closed.done());
  for (uint32_t worker : {0, 1}) {
    const std::vector<float> small = {1, 2, 3}, large(1000, 1);
    for (const auto& [variable, values] : {std::pair{0u, &small}, std::pair{1u, &large}}) {
      const auto size = static_cast<int64_t>(values->size());
      const auto reply = Await<PushReply>([&, &variable = variable, &values = values](auto done) {
        other->Push(PushOf(worker, 0, variable, size, 0, size), {BytesOf(*values)},
                    std::move(done));
      });
      CHECK(reply.ok());
    }
  }
  CHECK(closed.Wait().ok());
  CHECK(others.Wait().ok());
}

TEST_CASE("A client that goes answers its calls first") {
  Ps ps;
  Answer<Values> pull;
  Answer<DequeueTokenReply> token;
  {
    const auto client = ps.ps()->NewData();
    client->Pull(PullOf(0, 1, 0), pull.done());
    client->DequeueToken(DequeueOf(0, 1), token.done());
  }
  CHECK(absl::IsCancelled(pull.Wait().status()));
  CHECK(absl::IsCancelled(token.Wait().status()));
  ps.CloseStep(0);
}

}  // namespace
}  // namespace lockstep
