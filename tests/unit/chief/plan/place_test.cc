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

// A table of 10 rows of 4, a kernel [4, 3], a bias of 3.
ModelGraph Wide() {
  return GraphOf(R"(
    input_shape: [1]
    layers { name: "table" embedding { rows: 10 dim: 4 } }
    layers { name: "fc" frozen: true dense { units: 3 } }
    layers { name: "loss" softmax_cross_entropy {} })");
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

}  // namespace
}  // namespace lockstep::chief
