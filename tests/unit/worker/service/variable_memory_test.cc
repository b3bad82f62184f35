// The bytes that a worker certainly takes, by hand.
#include "worker/service/variable_memory.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/placed_variable.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

// "w" [1000] is trained, "mean" [10] a statistic, "fixed" [100] frozen, the loss last.
class Variables {
 public:
  explicit Variables(bool is_replicated) : is_replicated_(is_replicated) {
    placement_.set_shards(2);
    Add("w", 1000, /*trainable=*/true);
    Add("mean", 10, /*trainable=*/false);
    Add("fixed", 100, /*trainable=*/true)->set_frozen(true);
  }

  VariableSpec* Add(const std::string& name, int64_t elements, bool trainable) {
    const auto id = static_cast<uint32_t>(placement_.variables_size());
    VariableSpec* const spec = placement_.add_variables();
    *spec = PlacedVariable(id, name, elements, 0, trainable, 0);
    spec->set_replicated(is_replicated_);
    return spec;
  }
  // Of 8 columns.
  void AddTable(const std::string& name, int64_t rows) {
    VariableSpec* const spec = Add(name, rows, /*trainable=*/true);
    spec->add_dims(8);
    spec->set_sparse(true);
  }
  void AddInTwoParts(const std::string& name, int64_t elements) {
    for (const int64_t part : {0, 1}) {
      VariableSpec* const spec =
          Add(name + "#" + std::to_string(part), elements / 2, /*trainable=*/true);
      spec->mutable_part()->set_of(name);
      spec->mutable_part()->set_first_row(part * elements / 2);
      spec->mutable_part()->set_num_rows(elements);
      spec->set_shard(static_cast<uint32_t>(part));
    }
  }

  MemoryNeed Need(const VariableUse& use) {
    Placement placement = placement_;
    const auto id = static_cast<uint32_t>(placement.variables_size());
    *placement.add_variables() = PlacedVariable(id, "loss", 1, 0, /*trainable=*/false, 0);
    const auto layout = VariableLayout::Create(placement);
    REQUIRE(layout.ok());
    return NeedOfVariables(*layout, use);
  }

 private:
  const bool is_replicated_;
  Placement placement_;
};

OptimizerRules RulesOf(const OptimizerDef& optimizer) { return *OptimizerRules::Create(optimizer); }

OptimizerDef Adam(bool is_lazy) {
  OptimizerDef optimizer;
  optimizer.mutable_adam()->set_lazy(is_lazy);
  return optimizer;
}

TEST_CASE("values and gradients of dense variables are counted where both come in messages") {
  Variables variables(/*is_replicated=*/false);
  const uint64_t values = 4 * (1000 + 10 + 100 + 1);
  const uint64_t gradients = 4 * (1000 + 10 + 1);
  const MemoryNeed need = variables.Need({});
  CHECK(need.bytes == values + gradients);
  CHECK(need.error ==
        "variables: expected tensors that fit the memory, got at least 8488 bytes; the largest, "
        "\"w\" of shape [1000], takes 8000 bytes (1 values, 1 gradients)");
  CHECK(need.remedy == "use a smaller model");
}

TEST_CASE("each tower of an asynchronous job has values and gradients of its own") {
  Variables variables(/*is_replicated=*/false);
  const MemoryNeed need = variables.Need({.holders = 3});
  CHECK(need.bytes == 3 * 8488);
  CHECK_THAT(need.error, Contains("24000 bytes (1 values, 1 gradients for each of 3 towers)"));
  CHECK_THAT(need.remedy, Contains("fewer towers"));
}

TEST_CASE("a table that the ps keep costs nothing") {
  Variables variables(/*is_replicated=*/false);
  variables.AddTable("table", int64_t{1} << 56);
  CHECK(variables.Need({}).bytes == 8488);
}

TEST_CASE("values that may be read in a ps's memory cost nothing, unless they are split") {
  Variables variables(/*is_replicated=*/false);
  CHECK(variables.Need({.values_in_place = true}).bytes == 4 * (1000 + 10 + 1));
  variables.AddInTwoParts("split", 50);
  CHECK(variables.Need({.values_in_place = true}).bytes == 4 * (1000 + 10 + 1) + 2 * 4 * 50);
}

TEST_CASE("a replicated job has values, the next ones, slots, gradients and sums on each tower") {
  Variables variables(/*is_replicated=*/true);
  variables.AddTable("table", 100);
  const uint64_t w = (2 + 2 + 1 + 1) * 4 * 1000;
  const uint64_t mean = (2 + 1) * 4 * 10;
  const uint64_t fixed = 4 * 100;
  const uint64_t loss = (1 + 1) * 4;
  const uint64_t table_bytes = 4 * 100 * 8;
  const OptimizerRules adam = RulesOf(Adam(/*is_lazy=*/false));
  const MemoryNeed need = variables.Need({.holders = 2, .rules = &adam});
  CHECK(need.bytes == 2 * (w + mean + fixed + loss + (2 + 2) * table_bytes));
  CHECK_THAT(need.error, Contains("\"w\" of shape [1000], takes 48000 bytes (2 values, 2 slots, 1 "
                                  "gradients, 1 sums of gradients for each of 2 towers)"));
  CHECK_THAT(need.remedy, Contains("fewer towers") && Contains("parameter_server"));

  // Of a table that changes row by row there is no next value.
  const OptimizerRules lazy = RulesOf(Adam(/*is_lazy=*/true));
  CHECK(variables.Need({.holders = 2, .rules = &lazy}).bytes ==
        2 * (w + mean + fixed + loss + (1 + 2) * table_bytes));
  OptimizerDef optimizer;
  optimizer.mutable_sgd();
  const OptimizerRules sgd = RulesOf(optimizer);
  CHECK(variables.Need({.holders = 1, .rules = &sgd}).bytes ==
        4 * 4 * 1000 + mean + fixed + loss + table_bytes);
}

TEST_CASE("a moving average is a slot, and changes all rows of a table") {
  Variables variables(/*is_replicated=*/true);
  variables.AddTable("table", 100);
  OptimizerDef optimizer;
  optimizer.mutable_sgd();
  optimizer.mutable_variable_averages()->set_decay(0.9f);
  optimizer.mutable_variable_averages()->add_only("table");
  const OptimizerRules rules = RulesOf(optimizer);
  const uint64_t others = 4 * 4 * 1000 + 3 * 4 * 10 + 4 * 100 + 2 * 4;
  CHECK(variables.Need({.rules = &rules}).bytes == others + (2 + 1) * 4 * 100 * 8);
}

TEST_CASE("bytes beyond what can be counted are an answer") {
  Variables variables(/*is_replicated=*/false);
  variables.Add("huge", int64_t{1} << 59, /*trainable=*/true);
  const MemoryNeed need = variables.Need({.holders = 4});
  CHECK_FALSE(need.bytes.has_value());
  CHECK_THAT(need.error,
             Contains("got more bytes than can be counted; the largest, \"huge\" of "
                      "shape [576460752303423488], takes more bytes than can be counted"));

  // Each can be counted, and their sum cannot.
  Variables two(/*is_replicated=*/false);
  for (const char* name : {"a", "b"}) {
    two.Add(name, int64_t{1} << 59, /*trainable=*/true)->set_frozen(true);
  }
  const MemoryNeed of_two = two.Need({.holders = 4});
  CHECK_FALSE(of_two.bytes.has_value());
  CHECK_THAT(of_two.error, Contains("\"a\" of shape [576460752303423488], takes "
                                    "9223372036854775808 bytes"));
}

TEST_CASE("a job whose variables cost nothing fits everywhere") {
  const auto layout = VariableLayout::Create([] {
    Placement placement;
    placement.set_shards(1);
    return placement;
  }());
  REQUIRE(layout.ok());
  CHECK(NeedOfVariables(*layout, {}).bytes == 0);
}

}  // namespace
}  // namespace lockstep::worker
