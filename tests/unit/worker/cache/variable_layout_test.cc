#include "worker/cache/variable_layout.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/support/placed_variable.h"

namespace lockstep::worker {
namespace {

VariableSpec* AddPart(Placement* placement, int64_t first_row, int64_t rows, uint32_t shard) {
  VariableSpec* spec = placement->add_variables();
  const auto id = static_cast<uint32_t>(placement->variables_size() - 1);
  *spec = PlacedVariable(id, "table#" + std::to_string(id), rows, shard, true, 0);
  spec->add_dims(4);
  spec->set_sparse(true);
  spec->mutable_part()->set_of("table");
  spec->mutable_part()->set_first_row(first_row);
  spec->mutable_part()->set_num_rows(10);
  return spec;
}

TEST_CASE("parts become one variable, and what is whole stays") {
  Placement placement;
  placement.set_shards(3);
  AddPart(&placement, 0, 6, 2);
  AddPart(&placement, 6, 4, 1);
  *placement.add_variables() = PlacedVariable(2, "fc/bias", 5, 1, true, 0);
  placement.mutable_variables(2)->set_frozen(true);
  *placement.add_variables() = PlacedVariable(3, "train/loss", 1, 0, false, 0);
  const auto layout = VariableLayout::Create(placement);
  REQUIRE(layout.ok());
  REQUIRE(layout->variables().size() == 3);
  const WholeVariable& table = layout->variables()[0];
  CHECK(table.name == "table");
  CHECK(table.shape == Shape({10, 4}));
  CHECK(table.sparse);
  REQUIRE(table.parts.size() == 2);
  CHECK(table.parts[1].id == VariableId(1));
  CHECK(table.parts[1].shard == 1);
  CHECK(table.parts[1].shape == Shape({4, 4}));
  CHECK(table.parts[1].first_row == 6);
  CHECK(layout->variables()[1].name == "fc/bias");
  CHECK(layout->variables()[1].frozen);
  CHECK(layout->variables()[2].parts.size() == 1);
  CHECK_FALSE(layout->variables()[2].trainable);
  // The frozen bias gets no gradient.
  CHECK(layout->pushed_parts(0, 0) == 1);
  CHECK(layout->pushed_parts(0, 1) == 1);
  CHECK(layout->pushed_parts(0, 2) == 1);
}

TEST_CASE("a scalar and a variable of one part are whole") {
  Placement placement;
  placement.set_shards(1);
  *placement.add_variables() = PlacedVariable(0, "scalar", 1, 0, true, 0);
  placement.mutable_variables(0)->clear_dims();
  AddPart(&placement, 0, 10, 0);
  const auto layout = VariableLayout::Create(placement);
  REQUIRE(layout.ok());
  CHECK(layout->variables()[0].shape == Shape());
  CHECK(layout->variables()[1].name == "table");
  CHECK(layout->variables()[1].parts.size() == 1);
}

TEST_CASE("parts that do not make a variable are refused by name") {
  const auto error = [](auto change) {
    Placement placement;
    placement.set_shards(1);
    AddPart(&placement, 0, 6, 0);
    AddPart(&placement, 6, 4, 0);
    *placement.add_variables() = PlacedVariable(2, "train/loss", 1, 0, false, 0);
    change(&placement);
    const absl::Status status = VariableLayout::Create(placement).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  using absl::StrContains;
  CHECK(StrContains(error([](Placement* p) { p->mutable_variables()->DeleteSubrange(1, 1); }),
                    "train/loss comes where the next part of table was expected"));
  CHECK(StrContains(error([](Placement* p) { p->mutable_variables()->DeleteSubrange(1, 2); }),
                    "table has 6 rows in its parts, expected 10"));
  CHECK(StrContains(error([](Placement* p) { p->mutable_variables()->DeleteSubrange(0, 1); }),
                    "table#1 has 4 rows from row 6 of 10; expected them from row 0"));
  CHECK(StrContains(
      error([](Placement* p) { p->mutable_variables(1)->mutable_part()->set_first_row(5); }),
      "expected them from row 6"));
  CHECK(StrContains(
      error([](Placement* p) { p->mutable_variables(1)->mutable_part()->set_num_rows(11); }),
      "next part of table"));
  CHECK(StrContains(error([](Placement* p) { p->mutable_variables(1)->set_sparse(false); }),
                    "next part of table"));
  CHECK(StrContains(
      error([](Placement* p) { p->mutable_variables(1)->mutable_part()->set_first_row(-1); }),
      "table#1"));
  CHECK(StrContains(error([](Placement* p) { p->mutable_variables(2)->set_shard(1); }),
                    "train/loss is on ps 1, but there are 1 ps"));
}

}  // namespace
}  // namespace lockstep::worker
