// Which values a pull gets, and when.
#include <catch2/catch.hpp>
#include <deque>

#include "absl/strings/match.h"
#include "common/base/limits.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::kCommand;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;

TEST_CASE("a pull waits for its version and gets exactly it") {
  Harness h(PlanOf(PlacementOf({{"a", {2}}, {"b", {3}}}), 1, 1));
  const auto both = h.Pull(0, 1, {{VariableId(1)}, {VariableId(0), 4, 4}});
  const auto only_b = h.Pull(0, 1, {{VariableId(1), 4, 0}});
  h.Grant(0, 1, 1.0f);
  h.Push(0, 1, 0, 1, {1, 2, 3});
  CHECK(both.IsParked());
  REQUIRE_FALSE(only_b.IsParked());
  CHECK(only_b->version == GlobalStep(1));
  CHECK(test::ValuesOf(only_b->pieces[0]) == std::vector<float>{-2, -3});
  CHECK(only_b->pieces[0].offset == 4);
  // Of both variables there is version 0 alone while one of them lags.
  const auto old = h.Pull(0, 0, {{VariableId(0)}, {VariableId(1)}});
  REQUIRE_FALSE(old.IsParked());
  CHECK(old->version == GlobalStep(0));
  CHECK(test::ValuesOf(old->pieces[1]) == std::vector<float>{0, 0, 0});
  h.Push(0, 1, 0, 0, {5, 6});
  REQUIRE_FALSE(both.IsParked());
  CHECK(test::ValuesOf(both->pieces[0]) == std::vector<float>{-1, -2, -3});
  CHECK(test::ValuesOf(both->pieces[1]) == std::vector<float>{-6});
}

TEST_CASE("a version that is kept no longer is answered with the newest, one for all pieces") {
  Harness h(PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 1, 1));
  for (int64_t step = 0; step < 3; ++step) {
    h.Grant(step, 1, 1.0f);
    h.Push(0, step + 1, step, 1, {1});
    if (step == 2) break;
    h.Push(0, step + 1, step, 0, {1});
  }
  // b is at version 3, a at 2.
  const auto pulled = h.Pull(0, 0, {{VariableId(0)}, {VariableId(1)}});
  REQUIRE_FALSE(pulled.IsParked());
  CHECK(pulled->version == GlobalStep(2));
  CHECK(test::ValuesOf(pulled->pieces[0])[0] == -2);
  CHECK(test::ValuesOf(pulled->pieces[1])[0] == -2);
  CHECK(h.Pull(0, 1, {{VariableId(1)}})->version == GlobalStep(3));
}

TEST_CASE("the same pull again replaces the parked one; others stay") {
  Harness h(OneVariable(2, 1));
  const auto first = h.Pull(0, 1, {{VariableId(0)}});
  const auto other_worker = h.Pull(1, 1, {{VariableId(0)}});
  const auto other_version = h.Pull(0, 2, {{VariableId(0)}});
  const auto again = h.Pull(0, 1, {{VariableId(0)}});
  CHECK(absl::IsUnavailable(first.status()));
  CHECK(h.shard.Report().waiting_pulls == 3);
  h.Grant(0, 1, 1.0f);
  h.Push(0, 1, 0, 0, {1});
  CHECK(again.status().ok());
  CHECK(other_worker.status().ok());
  CHECK(other_version.IsParked());
  CHECK(first.calls() == 1);
}

// 16 MiB of values.
constexpr int64_t kLarge = 4 << 20;

TEST_CASE("a worker that does not read its replies gets no more of them, others do") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  std::vector<test::Reply<PullResult>> unread;
  absl::Status last;
  for (int64_t step = 0; step < 20 && last.ok(); ++step) {
    unread.push_back(h.Pull(0, step, {{VariableId(0)}}));
    last = unread.back().status();
    h.Grant(step, 1);
    h.Push(1, step + 1, step, 0, std::vector<float>(kLarge, 1));
  }
  CHECK(absl::IsResourceExhausted(last));
  CHECK(absl::StrContains(last.message(), "worker 0"));
  CHECK(unread.size() == 2);  // and the refusal
  const auto version = h.shard.GetView().shard_step.value();
  CHECK(h.Pull(1, version, {{VariableId(0)}}).status().ok());
  unread.clear();
  CHECK(h.Pull(0, version, {{VariableId(0)}}).status().ok());
}

TEST_CASE("a worker gets a version four times before it reads one of them") {
  const bool is_sparse = GENERATE(false, true);
  CAPTURE(is_sparse);
  Harness h(
      PlanOf(PlacementOf({{.name = "w", .dims = {kLarge / 4, 4}, .sparse = is_sparse}}), 2, 1));
  PullPiece piece{VariableId(0)};
  for (int64_t row = 0; is_sparse && row < kLarge / 4; ++row) piece.rows.push_back(row);
  std::vector<test::Reply<PullResult>> unread;
  for (uint64_t i = 0; i < limits::kMaxUnreadVersionsOfWorker; ++i) {
    unread.push_back(h.Pull(0, 0, {piece}));
    REQUIRE(unread.back().status().ok());
  }
  const auto refused = h.Pull(0, 0, {piece});
  CHECK(absl::IsResourceExhausted(refused.status()));
  CHECK(absl::StrContains(refused.status().message(), "worker 0"));
  CHECK(h.Pull(1, 0, {piece}).status().ok());
  unread.pop_back();
  CHECK(h.Pull(0, 0, {piece}).status().ok());
}

TEST_CASE("pulls of versions to come count like replies that are not read") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 1, 1));
  std::vector<test::Reply<PullResult>> waiting;
  for (int64_t version = 1; version <= 5; ++version) {
    waiting.push_back(h.Pull(0, version, {{VariableId(0)}}));
  }
  CHECK(waiting[3].IsParked());
  CHECK(absl::IsResourceExhausted(waiting[4].status()));
}

TEST_CASE("replies to a worker keep one version, whatever it asks for of others") {
  constexpr uint32_t kWorkers = 12;
  // Worker kWorkers makes the steps.
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), kWorkers + 1, 1));
  std::vector<test::Reply<PullResult>> unread;
  int refused = 0;
  for (int64_t step = 0; step < 3 * kWorkers; ++step) {
    const auto reply = h.Pull(static_cast<uint32_t>(step) % kWorkers, step, {{VariableId(0)}});
    if (reply.status().ok()) {
      unread.push_back(reply);
    } else {
      refused += absl::IsResourceExhausted(reply.status());
    }
    h.Grant(step, 1);
    h.Push(kWorkers, step + 1, step, 0, std::vector<float>(kLarge, 1));
  }
  CHECK(refused == 2 * kWorkers);
  CHECK(unread.size() == kWorkers);
  // Who has read everything is served.
  unread.clear();
  CHECK(h.Pull(1, 3 * kWorkers, {{VariableId(0)}}).status().ok());
}

// A piece of the first variable.
PullPiece PieceOf(uint64_t size, uint64_t number = 0) {
  return {VariableId(0), number * size, size};
}

bool RefersToVersion(const test::Reply<PullResult>& reply) {
  const PulledPiece& piece = reply->pieces[0];
  return piece.owner->num_bytes() > piece.size;
}

// 2 MiB of values.
constexpr int64_t kMedium = 512 << 10;

// Worker 1 makes the step.
void MakeStep(Harness* h, int64_t step, int64_t elements) {
  h->Grant(step, 1);
  h->Push(1, static_cast<uint64_t>(step) + 1, step, 0,
          std::vector<float>(static_cast<size_t>(elements), 1));
}

TEST_CASE("a reply copies what it has of another version than the one that is unread") {
  constexpr uint64_t kPiece = uint64_t{256} << 10;
  constexpr int kCopies = limits::kMaxUnreadCopyBytes / kPiece;
  Harness h(PlanOf(PlacementOf({{"w", {kMedium}}}), 2, 1));
  std::vector<test::Reply<PullResult>> unread;
  for (int64_t step = 0; step <= kCopies; ++step) {
    unread.push_back(h.Pull(0, step, {PieceOf(kPiece)}));
    REQUIRE(unread.back().status().ok());
    CHECK(unread.back()->version == GlobalStep(step));
    CHECK(test::ValuesOf(unread.back()->pieces[0]).back() == static_cast<float>(-step));
    CHECK(RefersToVersion(unread.back()) == (step == 0));
    MakeStep(&h, step, kMedium);
  }
  const auto refused = h.Pull(0, kCopies + 1, {PieceOf(kPiece)});
  CHECK(absl::IsResourceExhausted(refused.status()));
  CHECK(absl::StrContains(refused.status().message(), "worker 0"));
  CHECK(RefersToVersion(h.Pull(1, kCopies + 1, {PieceOf(kPiece)})));
  // A copy that has been read makes room for the next one; all of them, for a version.
  unread.pop_back();
  CHECK(h.Pull(0, kCopies + 1, {PieceOf(kPiece)}).status().ok());
  unread.clear();
  CHECK(RefersToVersion(h.Pull(0, kCopies + 1, {PieceOf(kPiece)})));
}

TEST_CASE("a pull that waits is answered with a copy while another version is unread") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  const auto unread = h.Pull(0, 0, {PieceOf(4)});
  const auto small = h.Pull(0, 1, {PieceOf(4)});
  const auto large = h.Pull(0, 1, {PieceOf(limits::kMaxUnreadCopyBytes)});
  CHECK(small.IsParked());
  CHECK(large.IsParked());
  MakeStep(&h, 0, kLarge);
  REQUIRE(small.status().ok());
  CHECK_FALSE(RefersToVersion(small));
  CHECK(test::ValuesOf(small->pieces[0]) == std::vector<float>{-1});
  CHECK(absl::IsResourceExhausted(large.status()));
}

TEST_CASE("a worker that reads more slowly than others make steps gets on") {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  // As a client's window. The ps knows later than the client that a reply is read: two windows. Of
  // values in memory that it lends, one message is of 4 MiB.
  constexpr size_t kWindow = 4;
  constexpr uint64_t kSharedPiece = uint64_t{4} << 20;
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  std::deque<test::Reply<PullResult>> unread = {h.Pull(0, 0, {PieceOf(kPiece)})};
  MakeStep(&h, 0, kLarge);
  for (int64_t step = 1; step < 20; ++step) {
    if (unread.size() == 1 + 2 * kWindow) unread.pop_front();
    unread.push_back(h.Pull(0, step, {PieceOf(kPiece, static_cast<uint64_t>(step) % 2)}));
    REQUIRE(unread.back().status().ok());
    CHECK(h.Pull(0, step, {PieceOf(kSharedPiece)}).status().ok());
    MakeStep(&h, step, kLarge);
  }
}

TEST_CASE("an old version that is kept is copied, of any size") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  for (int64_t step = 0; step < 3; ++step) {
    h.Grant({.command = kCommand,
             .step = GlobalStep(step),
             .required = 1,
             .learning_rate = 1.0f,
             .keep_values = step == 0});
    h.Push(1, static_cast<uint64_t>(step) + 1, step, 0, std::vector<float>(kLarge, 1));
  }
  constexpr uint64_t kPiece = uint64_t{8} << 20;
  const auto kept = h.Pull(0, 1, {PieceOf(kPiece)});
  REQUIRE(kept.status().ok());
  CHECK_FALSE(RefersToVersion(kept));
  CHECK(test::ValuesOf(kept->pieces[0]).back() == -1);
  CHECK(absl::IsResourceExhausted(h.Pull(0, 1, {PieceOf(kPiece)}).status()));
  const auto trains = h.Pull(0, 3, {PieceOf(kPiece)});
  CHECK(RefersToVersion(trains));
  // One limit for what an evaluation and the training have copied.
  MakeStep(&h, 3, kLarge);
  CHECK(absl::IsResourceExhausted(h.Pull(0, 4, {PieceOf(kPiece)}).status()));
}

// Worker 1 makes step `step`, after which its values are kept.
void MakeKept(Harness* h, int64_t step) {
  h->Grant({.command = kCommand,
            .step = GlobalStep(step),
            .required = 1,
            .learning_rate = 1.0f,
            .keep_values = true});
  h->Push(1, static_cast<uint64_t>(step) + 1, step, 0, std::vector<float>(kLarge, 1));
}

TEST_CASE("an evaluation and the fetch of the next version by one worker are both served") {
  constexpr uint64_t kHalf = uint64_t{8} << 20;
  const bool next_is_kept = GENERATE(false, true);
  CAPTURE(next_is_kept);
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  MakeKept(&h, 0);
  std::vector<test::Reply<PullResult>> replies = {h.Pull(0, 1, {PieceOf(kHalf)}),
                                                  h.Pull(0, 2, {PieceOf(kHalf)}),
                                                  h.Pull(0, 2, {PieceOf(kHalf, 1)})};
  CHECK(replies[1].IsParked());
  if (next_is_kept) {
    MakeKept(&h, 1);
  } else {
    MakeStep(&h, 1, kLarge);
  }
  replies.push_back(h.Pull(0, 1, {PieceOf(kHalf, 1)}));
  for (const test::Reply<PullResult>& reply : replies) {
    REQUIRE(reply.status().ok());
    CHECK(RefersToVersion(reply));
  }
  CHECK(replies[2]->version == GlobalStep(2));
  CHECK(replies[3]->version == GlobalStep(1));
  // It keeps these two, and no third.
  MakeKept(&h, 2);
  CHECK_FALSE(RefersToVersion(h.Pull(0, 3, {PieceOf(4)})));
}

TEST_CASE("values of a version in half the width are of that version") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  const auto pull_narrow = [&](int64_t version, const PullPiece& piece) {
    test::Reply<PullResult> reply;
    h.shard.Pull({.worker = test::IdentityOf(0),
                  .version = GlobalStep(version),
                  .pieces = {piece},
                  .wire_type = DType::kBFloat16},
                 reply.done());
    return reply;
  };
  const auto wide = h.Pull(0, 0, {{VariableId(0)}});
  const auto narrow = pull_narrow(0, {VariableId(0)});
  REQUIRE(wide.status().ok());
  REQUIRE(narrow.status().ok());
  CHECK(narrow->pieces[0].owner->num_bytes() == wide->pieces[0].owner->num_bytes() / 2);
  CHECK(RefersToVersion(h.Pull(0, 0, {PieceOf(4)})));
  CHECK(RefersToVersion(pull_narrow(0, PieceOf(4))));
  MakeStep(&h, 0, kLarge);
  CHECK_FALSE(RefersToVersion(h.Pull(0, 1, {PieceOf(4)})));
  CHECK_FALSE(RefersToVersion(pull_narrow(1, PieceOf(4))));
}

TEST_CASE("malformed pulls are refused") {
  Harness h(OneVariable());
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(1)}}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(0), 5, 0}}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(0), 2, 3}}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(0), 2, ~uint64_t{0}}}).status()));
  CHECK(absl::IsFailedPrecondition(h.Pull(3, 0, {{VariableId(0)}}).status()));
}

TEST_CASE("a reader's values stay as they are while steps go on") {
  Harness h(OneVariable());
  const auto read = h.Pull(0, 0, {{VariableId(0)}});
  for (int64_t step = 0; step < 5; ++step) {
    h.Grant(step, 1, 1.0f);
    h.Push(0, step + 1, step, 0, {1});
  }
  CHECK(test::ValuesOf(read->pieces[0])[0] == 0);
  CHECK(h.Read(5, 0)[0] == -5);
}

TEST_CASE("kept values stay readable under their number until they are released") {
  Harness h(OneVariable());
  for (int64_t step = 0; step < 4; ++step) {
    GrantArguments grant{.command = kCommand,
                         .step = GlobalStep(step),
                         .learning_rate = 1.0f,
                         .keep_values = step == 0};
    h.Grant(grant);
    h.Push(0, step + 1, step, 0, {1});
  }
  CHECK(h.Read(1, 0)[0] == -1);
  CHECK(h.Pull(0, 2, {{VariableId(0)}})->version == GlobalStep(4));
  REQUIRE(h.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(h.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(h.Pull(0, 1, {{VariableId(0)}})->version == GlobalStep(4));
}

}  // namespace
}  // namespace lockstep::ps
