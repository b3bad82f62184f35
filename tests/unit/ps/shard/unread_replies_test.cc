// What a worker may still do while it has not read replies.
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/limits.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

// Of a table of 16 MiB: so many rows take 1 MiB.
constexpr int64_t kWidth = 4;
constexpr int64_t kRowsOfMebibyte = (1 << 20) / (kWidth * static_cast<int64_t>(sizeof(float)));
constexpr int64_t kTableMebibytes = 16;
const Shape kTable({kTableMebibytes * kRowsOfMebibyte, kWidth});

std::vector<int64_t> Rows(int64_t count, int64_t first = 0) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// A MiB of the table.
PullPiece PieceOfTable(int64_t number) {
  return {.variable = VariableId(0), .rows = Rows(kRowsOfMebibyte, number * kRowsOfMebibyte)};
}

CreateVariablesRequest TablePlan() {
  return PlanOf(
      PlacementOf({{.name = "t", .dims = {kTable.dim(0), kTable.dim(1)}, .sparse = true}}), 2, 1);
}

// Worker 1 makes the step with a gradient of the first `count` rows.
void MakeSparseStep(Harness* h, int64_t step, int64_t count) {
  h->Grant(step, 1);
  const std::vector<float> values(static_cast<size_t>(count * kWidth), 1);
  REQUIRE(h->shard
              .Push(Message(IdentityOf(1), static_cast<uint64_t>(step) + 1, step)
                        .Rows(0, kTable, Rows(count), values)
                        .Ready())
              .ok());
}

TEST_CASE("a worker that does not read rows gets little more of them than gradients have") {
  constexpr int64_t kMost = limits::kMaxUnreadCopyBytes / kMebibyte;
  Harness h(TablePlan());
  MakeSparseStep(&h, 0, 16);
  std::vector<test::Reply<PullResult>> unread;
  for (int64_t i = 0; i < kMost; ++i) {
    unread.push_back(h.Pull(0, 1, {PieceOfTable(i)}));
    REQUIRE(unread.back().status().ok());
  }
  const auto refused = h.Pull(0, 1, {PieceOfTable(kMost)});
  CHECK(absl::IsResourceExhausted(refused.status()));
  CHECK(absl::StrContains(refused.status().message(), "worker 0"));
  CHECK(h.Pull(1, 1, {PieceOfTable(kMost)}).status().ok());
  unread.pop_back();
  unread.push_back(h.Pull(0, 1, {PieceOfTable(kMost)}));
  CHECK(unread.back().status().ok());
  // Gradients have more rows from now on: 2 MiB of them, and their indices.
  MakeSparseStep(&h, 1, 2 * kRowsOfMebibyte);
  for (int64_t i = 0; i < 6; ++i) {
    unread.push_back(h.Pull(0, 2, {PieceOfTable(i)}));
    CHECK(unread.back().status().ok());
  }
  CHECK(absl::IsResourceExhausted(h.Pull(0, 2, {PieceOfTable(0)}).status()));
  // While none is unread, any number may come.
  unread.clear();
  CHECK(h.Pull(0, 2, {{.variable = VariableId(0), .rows = Rows(kTable.dim(0))}}).status().ok());
}

TEST_CASE("a worker gets the rows of its next batch at once, beside those of an evaluation") {
  // As many as a client has in flight, and as many of which the ps does not know that they are
  // read.
  constexpr int64_t kWindows = 2 * 4;
  const bool has_pushed = GENERATE(false, true);
  CAPTURE(has_pushed);
  Harness h(TablePlan());
  const int64_t version = has_pushed ? 1 : 0;
  if (has_pushed) MakeSparseStep(&h, 0, kTable.dim(0));
  std::vector<test::Reply<PullResult>> replies;
  for (int64_t i = 0; i < kTableMebibytes; ++i) {
    replies.push_back(h.Pull(0, version + 1, {PieceOfTable(i)}));
  }
  for (int64_t i = 0; i < kWindows; ++i) {
    replies.push_back(h.Pull(0, version, {PieceOfTable(i)}));
  }
  MakeSparseStep(&h, version, 16);
  for (const test::Reply<PullResult>& reply : replies) CHECK(reply.status().ok());
}

// 16 MiB of values.
constexpr int64_t kLarge = 4 << 20;

// Worker 1 makes the step.
void MakeStep(Harness* h, int64_t step, bool keep = false) {
  h->Grant({.command = kCommand,
            .step = GlobalStep(step),
            .required = 1,
            .learning_rate = 1,
            .keep_values = keep});
  h->Push(1, static_cast<uint64_t>(step) + 1, step, 0, std::vector<float>(kLarge, 1));
}

// Worker 0 pushes the first element of its gradient.
absl::Status BeginPush(Harness* h, int64_t step) {
  return h->shard
      .Push(Message(IdentityOf(0), static_cast<uint64_t>(step) + 1, step)
                .Chunk(0, Shape({kLarge}), std::vector<float>(kLarge, 1), 0, sizeof(float))
                .Ready())
      .status();
}

TEST_CASE("a worker begins no gradient while replies of earlier versions are unread") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  std::vector<test::Reply<PullResult>> unread = {h.Pull(0, 0, {{VariableId(0), 0, 4}})};
  // The ps itself keeps the newest version and the one before.
  CHECK(BeginPush(&h, 0).ok());
  MakeStep(&h, 0);
  CHECK(BeginPush(&h, 1).ok());
  MakeStep(&h, 1);
  const absl::Status refused = BeginPush(&h, 2);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(absl::StrContains(refused.message(), "worker 0"));
  CHECK(h.shard.Report().held_bytes == 0);
  // It takes no memory to tell that a gradient is stale.
  CHECK(BeginPush(&h, 1).ok());
  MakeStep(&h, 2);
  CHECK(absl::IsResourceExhausted(BeginPush(&h, 3)));
  unread.clear();
  CHECK(BeginPush(&h, 3).ok());
}

TEST_CASE("a worker pushes while it reads an evaluation's version, and the next one") {
  Harness h(PlanOf(PlacementOf({{"w", {kLarge}}}), 2, 1));
  MakeStep(&h, 0, /*keep=*/true);
  const auto kept = h.Pull(0, 1, {{VariableId(0), 0, 4}});
  for (int64_t step = 1; step < 4; ++step) {
    const auto next = h.Pull(0, step + 1, {{VariableId(0), 0, 4}});
    CHECK(BeginPush(&h, step).ok());
    MakeStep(&h, step);
    REQUIRE(next.status().ok());
    CHECK(BeginPush(&h, step + 1).ok());
  }
  // Nobody evaluates it any more. The gradient that has begun goes on.
  REQUIRE(h.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(BeginPush(&h, 4).ok());
  MakeStep(&h, 4);
  CHECK(absl::IsResourceExhausted(BeginPush(&h, 5)));
}

}  // namespace
}  // namespace lockstep::ps
