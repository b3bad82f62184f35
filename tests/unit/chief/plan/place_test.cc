#include "chief/plan/place.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/config/text_proto.h"

namespace lockstep::chief {
namespace {

ModelGraph GraphOf(const std::string& text) {
  ModelDef def;
  REQUIRE(ParseTextProto("test", text, &def).ok());
  auto graph = ModelGraph::Build(def);
  REQUIRE(graph.ok());
  return *std::move(graph);
}

absl::StatusOr<Placement> Place(const ModelGraph& graph, uint32_t shards, int64_t max_part_bytes) {
  return chief::Place(graph, shards, max_part_bytes, {});
}

// A table of 10 rows of 4, a kernel [4, 3], a bias of 3.
ModelGraph Wide() {
  return GraphOf(R"(
    input_shape: [1]
    layers { name: "table" embedding { rows: 10 dim: 4 } }
    layers { name: "fc" frozen: true dense { units: 3 } }
    layers { name: "loss" softmax_cross_entropy {} })");
}

absl::StatusOr<Placement> PlaceBy(const std::string& strategy, uint32_t shards,
                                  int64_t max_part_bytes) {
  StrategyDef::ParameterServer def;
  REQUIRE(ParseTextProto("test", strategy, &def).ok());
  return chief::Place(Wide(), shards, max_part_bytes, def);
}

std::vector<uint32_t> ShardsOf(const absl::StatusOr<Placement>& placement) {
  REQUIRE(placement.ok());
  std::vector<uint32_t> shards;
  for (const VariableSpec& spec : placement->variables()) shards.push_back(spec.shard());
  return shards;
}

TEST_CASE("a variable above the limit is placed in parts of its rows, dense or sparse") {
  const auto placement = Place(Wide(), 2, 48);
  REQUIRE(placement.ok());
  std::vector<std::string> names;
  for (int i = 0; i < placement->variables_size(); ++i) {
    CHECK(placement->variables(i).id() == static_cast<uint32_t>(i));
    names.push_back(placement->variables(i).name());
  }
  CHECK(names == std::vector<std::string>{"table/table#0", "table/table#1", "table/table#2",
                                          "table/table#3", "fc/kernel", "fc/bias", "train/loss"});
  int64_t next = 0;
  for (int i = 0; i < 4; ++i) {
    const VariableSpec& part = placement->variables(i);
    CHECK(part.sparse());
    CHECK_FALSE(part.frozen());
    CHECK(part.part().of() == "table/table");
    CHECK(part.part().first_row() == next);
    CHECK(part.part().num_rows() == 10);
    CHECK(part.dims(1) == 4);
    CHECK(part.dims(0) * 16 <= 48);
    next += part.dims(0);
  }
  CHECK(next == 10);
  for (int i : {4, 5}) {
    CHECK_FALSE(placement->variables(i).has_part());
    CHECK_FALSE(placement->variables(i).sparse());
    CHECK(placement->variables(i).frozen());
  }
  CHECK(placement->variables(6).shard() == 0);

  // One byte less cuts the kernel too.
  CHECK(Place(Wide(), 2, 47)->variables(5).name() == "fc/kernel#0");
  CHECK(Place(Wide(), 2, int64_t{64} << 20)->variables_size() == 4);
}

TEST_CASE("parts do not depend on the number of ps, and spread over them") {
  const auto one = Place(Wide(), 1, 16), three = Place(Wide(), 3, 16);
  REQUIRE(one.ok());
  REQUIRE(three.ok());
  REQUIRE(one->variables_size() == three->variables_size());
  for (int i = 0; i < one->variables_size(); ++i) {
    VariableSpec moved = three->variables(i);
    moved.set_shard(0);
    CHECK(moved.SerializeAsString() == one->variables(i).SerializeAsString());
  }
  CHECK(BalanceOf(*one).max_bytes == 160 + 48 + 12 + 4);
  CHECK(BalanceOf(*three).max_bytes <= (160 + 48 + 12 + 4) / 3 + 16);
}

TEST_CASE("a statistic is never split") {
  const ModelGraph graph = GraphOf(R"(
    input_shape: [100]
    layers { name: "norm" batch_norm {} }
    layers { name: "loss" l2_loss {} })");
  const auto placement = Place(graph, 1, 100);
  REQUIRE(placement.ok());
  for (const VariableSpec& spec : placement->variables()) {
    CHECK(spec.has_part() == spec.trainable());
  }
}

TEST_CASE("the strategy's rule decides, and the loss stays on ps 0") {
  // The table in two parts of 20 elements, the kernel of 12, the bias of 3, the loss.
  CHECK(ShardsOf(PlaceBy("", 2, 80)) == std::vector<uint32_t>{1, 0, 1, 0, 0});
  CHECK(ShardsOf(PlaceBy("placement: LEAST_LOADED", 2, 80)) ==
        std::vector<uint32_t>{0, 1, 0, 1, 0});
  CHECK(ShardsOf(PlaceBy("placement: ROUND_ROBIN", 3, 80)) == std::vector<uint32_t>{0, 1, 2, 0, 0});
}

TEST_CASE("a variable goes where the job says, with all its parts") {
  const std::string table_on_1 = R"(place { variable: "table/table" ps: 1 })";
  CHECK(ShardsOf(PlaceBy(table_on_1, 2, 80)) == std::vector<uint32_t>{1, 1, 0, 0, 0});
  CHECK(ShardsOf(PlaceBy("placement: ROUND_ROBIN " + table_on_1, 2, 80)) ==
        std::vector<uint32_t>{1, 1, 0, 1, 0});
}

TEST_CASE("a place that does not exist is refused, naming the variable and the remedy") {
  const auto refusal = [](const std::string& strategy) {
    const absl::Status status = PlaceBy(strategy, 2, 80).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK(refusal(R"(place { variable: "fc/kernel" ps: 2 })") ==
        "strategy.parameter_server.place: variable fc/kernel: expected a ps from 0 to 1, got 2. "
        "Remedy: name a ps of the cluster spec");
  CHECK(absl::StrContains(refusal(R"(place { variable: "fc/kernel" ps: -1 })"), "got -1"));
  CHECK(refusal(R"(place { variable: "fc" ps: 1 })") ==
        "strategy.parameter_server.place: the model has no variable \"fc\". Remedy: write "
        "layer/variable, such as fc/kernel");
  // A part alone is no variable.
  CHECK(absl::StrContains(refusal(R"(place { variable: "table/table#0" ps: 1 })"), "no variable"));
  CHECK(absl::StrContains(refusal(R"(place { variable: "fc/bias" ps: 1 }
                                     place { variable: "fc/bias" ps: 0 })"),
                          "variable fc/bias is placed twice"));
  CHECK(absl::StrContains(refusal(R"(place { variable: "train/loss" ps: 1 })"),
                          "train/loss is always on ps 0"));
}

TEST_CASE("more parts than can be hosted are refused, naming the variable and the field") {
  const ModelGraph graph = GraphOf(R"(
    input_shape: [1]
    layers { name: "table" embedding { rows: 5000 dim: 1 } }
    layers { name: "loss" l2_loss {} })");
  const absl::Status status = Place(graph, 1, 4).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(),
                          "max_part_bytes: it cuts variable table/table of 20000 bytes into 5000 "
                          "parts, expected at most 4096. Remedy: raise it"));
}

TEST_CASE("the workers of a replicated job keep all but the loss and what is frozen") {
  auto placement = Place(Wide(), 2, int64_t{64} << 20);
  REQUIRE(placement.ok());
  LeaveToWorkers(&*placement);
  std::vector<std::string> replicated;
  for (const VariableSpec& spec : placement->variables()) {
    if (spec.replicated()) replicated.push_back(spec.name());
  }
  CHECK(replicated == std::vector<std::string>{"table/table"});
}

}  // namespace
}  // namespace lockstep::chief
