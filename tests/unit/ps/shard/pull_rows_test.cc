// Pulls of some rows of a sparse variable.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;
using test::ValuesOf;

const Shape kTable({4, 2});

CreateVariablesRequest TablePlan() {
  return PlanOf(PlacementOf({{.name = "dense", .dims = {2}, .initial = 1},
                             {.name = "table", .dims = {4, 2}, .sparse = true}}),
                1, 1);
}

PullPiece RowsOf(uint32_t variable, std::vector<int64_t> rows) {
  return {.variable = VariableId(variable), .rows = std::move(rows)};
}

// Closes the step: row r of the table changes by -10 r - {1, 2}.
void Step(Harness* h, int64_t step, bool keep = false) {
  h->Grant({.command = kCommand,
            .step = GlobalStep(step),
            .learning_rate = 1,
            .keep_values = keep,
            .keep_slots = keep});
  const uint64_t seq = static_cast<uint64_t>(step) + 1;
  h->Push(0, seq, step, 0, {0, 0});
  REQUIRE(h->shard
              .Push(Message(IdentityOf(0), seq, step)
                        .Rows(1, kTable, {0, 1, 2, 3}, {1, 2, 11, 12, 21, 22, 31, 32})
                        .Ready())
              .ok());
}

TEST_CASE("rows come in the order in which they were named, as often as they were named") {
  Harness h(TablePlan());
  Step(&h, 0);
  const auto pulled = h.Pull(0, 1, {RowsOf(1, {3, 0, 3}), {VariableId(0)}, RowsOf(1, {1})});
  REQUIRE_FALSE(pulled.IsParked());
  REQUIRE(pulled.status().ok());
  REQUIRE(pulled->pieces.size() == 3);
  CHECK(ValuesOf(pulled->pieces[0]) == std::vector<float>{-31, -32, -1, -2, -31, -32});
  CHECK(pulled->pieces[0].variable == VariableId(1));
  CHECK(pulled->pieces[0].offset == 0);
  CHECK(ValuesOf(pulled->pieces[1]) == std::vector<float>{1, 1});
  CHECK(ValuesOf(pulled->pieces[2]) == std::vector<float>{-11, -12});
}

TEST_CASE("rows are of the version that was asked for, waited for if need be") {
  Harness h(TablePlan());
  const auto parked = h.Pull(0, 1, {RowsOf(1, {2})});
  const auto again = h.Pull(0, 1, {RowsOf(1, {2})});
  const auto others = h.Pull(0, 1, {RowsOf(1, {2, 2})});
  CHECK(absl::IsUnavailable(parked.status()));
  CHECK(again.IsParked());
  Step(&h, 0);
  REQUIRE_FALSE(again.IsParked());
  CHECK(again->version == GlobalStep(1));
  CHECK(ValuesOf(again->pieces[0]) == std::vector<float>{-21, -22});
  CHECK(ValuesOf(others->pieces[0]) == std::vector<float>{-21, -22, -21, -22});
  // The version before the newest is readable by rows too, and what was read stays as it was.
  Step(&h, 1);
  const auto old = h.Pull(0, 1, {RowsOf(1, {1})});
  CHECK(old->version == GlobalStep(1));
  CHECK(ValuesOf(old->pieces[0]) == std::vector<float>{-11, -12});
  Step(&h, 2);
  Step(&h, 3);
  CHECK(ValuesOf(old->pieces[0]) == std::vector<float>{-11, -12});
  CHECK(h.Pull(0, 1, {RowsOf(1, {1})})->version == GlobalStep(4));
}

TEST_CASE("averages are pulled by rows as values are") {
  CreateVariablesRequest plan = TablePlan();
  plan.mutable_optimizer()->mutable_variable_averages()->set_decay(0.5f);
  Harness h(plan);
  Step(&h, 0, /*keep=*/true);
  test::Reply<PullResult> reply;
  h.shard.Pull({.worker = IdentityOf(0),
                .version = GlobalStep(1),
                .pieces = {RowsOf(1, {2, 0}), {VariableId(0)}},
                .averages = true},
               reply.done());
  REQUIRE_FALSE(reply.IsParked());
  REQUIRE(reply.status().ok());
  CHECK(ValuesOf(reply->pieces[0]) == std::vector<float>{-10.5f, -11, -0.5f, -1});
  CHECK(ValuesOf(reply->pieces[1]) == std::vector<float>{1, 1});
  CHECK(ValuesOf(h.Pull(0, 1, {RowsOf(1, {2})})->pieces[0]) == std::vector<float>{-21, -22});
}

TEST_CASE("a pull of rows that cannot be answered is refused, naming variable and row") {
  Harness h(TablePlan());
  const auto error = [&](PullPiece piece) {
    const auto reply = h.Pull(0, 0, {std::move(piece)});
    REQUIRE_FALSE(reply.IsParked());
    CHECK(absl::IsInvalidArgument(reply.status()));
    return std::string(reply.status().message());
  };
  CHECK(error(RowsOf(1, {0, 4})) == "variable \"table\" (1): expected rows in [0, 4), got 4");
  CHECK(error(RowsOf(1, {-1})) == "variable \"table\" (1): expected rows in [0, 4), got -1");
  CHECK(absl::StrContains(error(RowsOf(1, {INT64_MIN})), "got -9223372036854775808"));
  CHECK(error(RowsOf(0, {0, 1})) ==
        "variable \"dense\" (0): expected a range of bytes, got 2 rows: it is not sparse");
  PullPiece both = RowsOf(1, {1});
  both.size = 8;
  CHECK(error(both) ==
        "variable \"table\" (1): expected rows or a range of bytes, got 1 rows and 8 bytes from "
        "offset 0");
  both.size = 0;
  both.offset = 4;
  CHECK(absl::StrContains(error(both), "1 rows and 0 bytes from offset 4"));
  CHECK(absl::StrContains(error(RowsOf(2, {0})), "variable 2: unknown"));
  // Nothing has changed.
  CHECK(h.Read(0, 1) == std::vector<float>(8, 0));
}

TEST_CASE("one pull names at most as many rows as a message may weigh, in all its pieces") {
  const int64_t most = (16 << 20) / 8;
  Harness h(TablePlan());
  CHECK(h.Pull(0, 0, {RowsOf(1, std::vector<int64_t>(most, 1))}).status().ok());
  const auto beyond = h.Pull(0, 0, {RowsOf(1, std::vector<int64_t>(most + 1, 1))});
  CHECK(absl::IsInvalidArgument(beyond.status()));
  CHECK(absl::StrContains(beyond.status().message(), "at most 16777216 bytes of rows"));
  const auto together = h.Pull(0, 0, {RowsOf(1, {0}), RowsOf(1, std::vector<int64_t>(most, 1))});
  CHECK(absl::IsInvalidArgument(together.status()));
}

}  // namespace
}  // namespace lockstep::ps
