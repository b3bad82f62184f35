// Sparse gradients through the shard's door: what is refused, what is counted, what it does to the
// variable.
#include <catch2/catch.hpp>
#include <limits>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::Message;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;
using test::SpecText;

const Shape kTable({4, 2});

CreateVariablesRequest TablePlan(uint32_t total = 2, uint32_t aggregate = 2,
                                 TokenPolicy policy = PER_REPLICA) {
  return PlanOf(PlacementOf({{.name = "dense", .dims = {1}},
                             {.name = "table", .dims = {4, 2}, .initial = 10, .sparse = true}}),
                total, aggregate, policy);
}

Message From(uint32_t worker, uint64_t push_seq = 1, int64_t stamp = 0) {
  return Message(IdentityOf(worker), push_seq, stamp);
}

PushStatus VerdictOf(Harness* f, Message message) {
  const auto result = f->shard.Push(message.Ready());
  INFO(result.status());
  REQUIRE(result.ok());
  REQUIRE(result->statuses.size() == 1);
  return result->statuses[0];
}

std::string ErrorOf(Harness* f, Message message) {
  const absl::Status status = f->shard.Push(message.Ready()).status();
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST_CASE("a step closes with the mean of the rows, each over the gradients that name it") {
  Harness f(TablePlan());
  auto closed = f.Grant(0, 2);
  CHECK(VerdictOf(&f, From(0).Rows(1, kTable, {0, 2}, {2, 4, 6, 8})) == PushStatus::kAccepted);
  CHECK(VerdictOf(&f, From(1).Rows(1, kTable, {2}, {2, 4})) == PushStatus::kAccepted);
  CHECK(closed.IsParked());
  f.Push(0, 1, 0, 0, {1});
  f.Push(1, 1, 0, 0, {1});
  REQUIRE_FALSE(closed.IsParked());
  CHECK(closed->accepted == 4);
  CHECK(f.Read(1, 1) == std::vector<float>{8, 6, 10, 10, 6, 4, 10, 10});
  CHECK(f.Read(0, 1) == std::vector<float>(8, 10));
}

TEST_CASE("chunks of a sparse gradient come in any order, repeated and overlapping") {
  Harness f(TablePlan(1, 1));
  const std::vector<int64_t> indices = {3, 1};
  const std::vector<float> values = {1, 2, 3, 4};
  const auto chunk = [&](uint64_t offset, uint64_t size) {
    return VerdictOf(&f, From(0).Rows(1, kTable, indices, values, offset, size));
  };
  CHECK(chunk(16, 16) == PushStatus::kPending);
  CHECK(chunk(16, 16) == PushStatus::kPending);
  CHECK(chunk(8, 11) == PushStatus::kPending);
  CHECK(chunk(0, 16) == PushStatus::kAccepted);
  CHECK(chunk(0, 16) == PushStatus::kAccepted);
  f.Push(0, 1, 0, 0, {0});
  f.Grant(0, 1);
  CHECK(f.Read(1, 1) == std::vector<float>{10, 10, 7, 6, 10, 10, 9, 8});
}

TEST_CASE("a gradient without rows is whole at once and counts") {
  Harness f(TablePlan(1, 1));
  CHECK(VerdictOf(&f, From(0).Rows(1, kTable, {}, {})) == PushStatus::kAccepted);
  f.Push(0, 1, 0, 0, {0});
  const auto closed = f.Grant(0, 1);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(f.Read(1, 1) == std::vector<float>(8, 10));
}

TEST_CASE("what is malformed is refused with the variable's name and changes nothing") {
  Harness f(TablePlan());
  f.Grant(0, 1);
  f.Push(0, 1, 0, 0, {1});
  const int64_t stamp = GENERATE(0, -1);  // fresh or stale
  const auto rows = [stamp](std::vector<int64_t> indices, const Shape& shape = kTable) {
    const std::vector<float> values(indices.size() * 2, 1);
    return From(0, 7, stamp).Rows(1, shape, indices, values);
  };
  CHECK(ErrorOf(&f, rows({0, 4})) ==
        "variable \"table\" (1): slice 1: expected a row in [0, 4), got 4");
  CHECK(ErrorOf(&f, rows({-1})) ==
        "variable \"table\" (1): slice 0: expected a row in [0, 4), got -1");
  CHECK(ErrorOf(&f, rows({std::numeric_limits<int64_t>::min(), 0})) ==
        "variable \"table\" (1): slice 0: expected a row in [0, 4), got -9223372036854775808");
  CHECK(ErrorOf(&f, rows({0}, Shape({4, 3}))) ==
        "variable \"table\" (1): expected shape [4,2], got [4,3]");

  Message wrong_dtype = rows({0});
  wrong_dtype.arguments().pieces[0].dtype = DType::kFloat64;
  CHECK(ErrorOf(&f, wrong_dtype) == "variable \"table\" (1): expected dtype float32, got float64");
  Message negative = rows({0});
  negative.arguments().pieces[0].rows = -1;
  CHECK(absl::StartsWith(ErrorOf(&f, negative),
                         "variable \"table\" (1): expected a sparse gradient that is no larger"));
  Message huge = rows({0});
  huge.arguments().pieces[0].rows = std::numeric_limits<int64_t>::max() / 2;
  CHECK(absl::StrContains(ErrorOf(&f, huge), "Merge them"));
  Message fewer = rows({0, 1});
  fewer.arguments().pieces[0].rows = 1;
  CHECK(ErrorOf(&f, fewer) ==
        "variable \"table\" (1): expected bytes in [0, 16), got 32 bytes from offset 0");
  Message dense = From(0, 7, stamp).Whole(1, kTable, std::vector<float>(8, 1));
  CHECK(absl::StartsWith(ErrorOf(&f, dense), "variable \"table\" (1): expected bytes"));
  CHECK(ErrorOf(&f, From(0, 7, stamp).Rows(0, Shape({1}), {0}, {1})) ==
        "variable \"dense\" (0): expected a dense gradient, got 1 rows");
  CHECK(ErrorOf(&f, From(0, 7, stamp).Rows(1, kTable, {0, 1}, {1, 2, 3, 4}, 3, 13)) ==
        "variable \"table\" (1): expected pieces of whole row indices, got one that is cut at "
        "byte 3");
  CHECK(ErrorOf(&f, From(0, 7, stamp).Rows(1, kTable, {0}, {1, 2}).Rows(1, kTable, {0}, {1, 2})) ==
        "variable \"table\" (1): twice in one message");

  CHECK(f.shard.Report().stale == 0);
  CHECK(f.shard.Report().accepted == 1);
  CHECK(f.shard.Report().held_bytes == 0);
}

TEST_CASE("a bad index in a later message is refused, and the sound message after it counts") {
  Harness f(TablePlan(1, 1));
  const std::vector<float> values = {1, 2, 3, 4};
  CHECK(VerdictOf(&f, From(0).Rows(1, kTable, {0, 2}, values, 0, 8)) == PushStatus::kPending);
  CHECK(ErrorOf(&f, From(0).Rows(1, kTable, {0, 9}, values, 8, 24)) ==
        "variable \"table\" (1): slice 1: expected a row in [0, 4), got 9");
  CHECK(ErrorOf(&f, From(0).Rows(1, kTable, {0, 2, 3}, {1, 2, 3, 4, 5, 6}, 8, 40)) ==
        "variable \"table\" (1): a chunk of push 1 of worker 0 is of 3 rows, an earlier one was "
        "of 2");
  CHECK(VerdictOf(&f, From(0).Rows(1, kTable, {0, 2}, values, 8, 24)) == PushStatus::kAccepted);
}

TEST_CASE("values that are not finite count unless the job refuses them") {
  const float bad =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
               -std::numeric_limits<float>::infinity());
  CreateVariablesRequest plan = TablePlan(1, 1);
  Harness allowing(plan);
  CHECK(VerdictOf(&allowing, From(0).Rows(1, kTable, {1}, {0, bad})) == PushStatus::kAccepted);
  CHECK(VerdictOf(&allowing, From(0).Whole(0, Shape({1}), {bad})) == PushStatus::kAccepted);

  plan.set_non_finite(REFUSE_NON_FINITE);
  Harness refusing(plan);
  CHECK(absl::StartsWith(ErrorOf(&refusing, From(0).Rows(1, kTable, {1}, {0, bad})),
                         "variable \"table\" (1): element 1 of the gradient: expected a finite"));
  CHECK(absl::StartsWith(ErrorOf(&refusing, From(0).Whole(0, Shape({1}), {bad})),
                         "variable \"dense\" (0): element 0 of the gradient: expected a finite"));
  CHECK(absl::StartsWith(ErrorOf(&refusing, From(0).Rows(1, kTable, {1, 2}, {0, 0, 0, bad}, 24, 8)),
                         "variable \"table\" (1): element 3"));
  CHECK(absl::StrContains(ErrorOf(&refusing, From(0).Rows(1, kTable, {1}, {0, 0}, 8, 3)),
                          "pieces of whole elements"));
  CHECK(absl::StrContains(ErrorOf(&refusing, From(0).Whole(0, Shape({1}), {bad})),
                          "(sync.non_finite). Remedy: lower the learning rate"));
  CHECK(ExitCodeFor(refusing.shard.Push(From(0).Whole(0, Shape({1}), {bad}).Ready()).status()) ==
        ExitCode::kDiverged);
  CHECK(refusing.shard.Report().held_bytes == 0);
  CHECK(VerdictOf(&refusing, From(0).Rows(1, kTable, {1}, {0, 1})) == PushStatus::kAccepted);
}

TEST_CASE("unsorted and repeated rows are merged as TensorFlow merges them") {
  Harness f(PlanOf(PlacementOf({{.name = "v", .dims = {6, 1}, .sparse = true}}), 2, 2, FIFO));
  const Shape shape({6, 1});
  CHECK(VerdictOf(&f, From(0).Rows(0, shape, {5, 2}, {1, 2})) == PushStatus::kAccepted);
  CHECK(VerdictOf(&f, From(1).Rows(0, shape, {2, 5}, {10, 20})) == PushStatus::kAccepted);
  f.Grant(0, 2);
  CHECK(f.Read(1, 0) == std::vector<float>{0, 0, -12, 0, 0, -10.5});
}

TEST_CASE("the sum does not depend on the order in which workers' rows arrive") {
  std::vector<std::vector<float>> results;
  for (const bool reverse : {false, true}) {
    Harness f(TablePlan(3, 3));
    for (uint32_t i = 0; i < 3; ++i) {
      const uint32_t worker = reverse ? 2 - i : i;
      const float x = worker == 0 ? 1e8f : worker == 1 ? 1.0f : -1e8f;
      VerdictOf(&f, From(worker).Rows(1, kTable, {1}, {x, x}));
      f.Push(worker, 1, 0, 0, {0});
    }
    f.Grant(0, 3);
    results.push_back(f.Read(1, 1));
  }
  CHECK(results[0].size() == 8);
  CHECK(results[0] == results[1]);
}

TEST_CASE("a late sparse gradient is stale, told and counted; a repeated one gets its verdict") {
  Harness f(TablePlan(2, 1));
  f.Grant(0, 1);
  CHECK(VerdictOf(&f, From(0).Rows(1, kTable, {0}, {1, 1})) == PushStatus::kAccepted);
  CHECK(VerdictOf(&f, From(0).Rows(1, kTable, {0}, {1, 1})) == PushStatus::kAccepted);
  CHECK(VerdictOf(&f, From(1).Rows(1, kTable, {0}, {5, 5})) == PushStatus::kStale);
  CHECK(f.shard.Report().stale == 1);
  CHECK(f.shard.Report().accepted == 1);
  CHECK(f.shard.Report().held_bytes == 0);
}

TEST_CASE("a part of a table begins with the rows of the whole, whatever the number of parts") {
  const auto initial = [](std::vector<std::pair<int64_t, int64_t>> parts) {
    Placement placement;
    placement.set_shards(1);
    for (const auto& [first, rows] : parts) {
      VariableSpec* spec = placement.add_variables();
      spec->set_id(static_cast<uint32_t>(placement.variables_size() - 1));
      spec->set_name(parts.size() == 1 ? "table" : "table#" + std::to_string(spec->id()));
      spec->set_dtype(FLOAT32);
      spec->add_dims(rows);
      spec->add_dims(3);
      spec->set_trainable(true);
      spec->set_sparse(true);
      spec->mutable_initializer()->mutable_glorot();
      if (parts.size() == 1) continue;
      spec->mutable_part()->set_of("table");
      spec->mutable_part()->set_first_row(first);
      spec->mutable_part()->set_num_rows(11);
    }
    Harness f(PlanOf(placement, 1, 1));
    std::vector<float> values;
    for (uint32_t variable = 0; variable < parts.size(); ++variable) {
      const std::vector<float> part = f.Read(0, variable);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  };
  const std::vector<float> whole = initial({{0, 11}});
  CHECK(whole.size() == 33);
  CHECK(whole[0] != whole[3]);
  CHECK(initial({{0, 4}, {4, 4}, {8, 3}}) == whole);
  CHECK(initial({{0, 1}, {1, 10}}) == whole);
}

TEST_CASE("a placement that declares rows where there are none is refused by name") {
  const auto error = [](const SpecText& text, std::optional<RowPart> part = {}) {
    Placement placement = PlacementOf({text});
    if (part.has_value()) *placement.mutable_variables(0)->mutable_part() = *part;
    Shard shard({});
    REQUIRE(shard.SetView(test::ViewOf(1)).ok());
    const absl::Status status = shard.CreateVariables(PlanOf(placement, 1, 1)).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK(error({.name = "s", .dims = {}, .sparse = true}) ==
        "variable \"s\" (0): sparse: expected a trained variable with rows, got a scalar");
  CHECK(error({.name = "s", .dims = {2}, .trainable = false, .sparse = true}) ==
        "variable \"s\" (0): sparse: expected a trained variable with rows, got a statistic");
  RowPart part;
  part.set_of("t");
  part.set_first_row(7);
  part.set_num_rows(10);
  CHECK(error({.name = "t#1", .dims = {4, 2}}, part) ==
        "variable t#1: expected a part inside the 10 rows of \"t\", got shape [4,2] from row 7");
  part.set_first_row(0);
  part.set_num_rows(INT64_MIN);
  CHECK(absl::StrContains(error({.name = "t#1", .dims = {4, 2}}, part), "expected a part inside"));
  part.set_num_rows(INT64_MAX);
  CHECK(absl::StrContains(error({.name = "t#1", .dims = {4, 2}}, part), "variable t#1: "));
}

}  // namespace
}  // namespace lockstep::ps
