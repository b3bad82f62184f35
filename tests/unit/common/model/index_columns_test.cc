#include "common/model/index_columns.h"

#include "absl/strings/str_cat.h"
#include "tests/unit/common/model/model_text.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kLoss[] = R"( layers { name: "loss" l2_loss {} } )";

TEST_CASE("Embeddings read the input, or columns of it, and several the same ones") {
  const auto graph = BuildText(absl::StrCat(R"(
      input_shape: 12
      layers { name: "all" inputs: "input" embedding { rows: 7 dim: 1 combiner: SUM } }
      layers { name: "some" inputs: "input" columns { first: 2 count: 8 } }
      layers { name: "a" inputs: "some" embedding { rows: 5 dim: 1 combiner: SUM } }
      layers { name: "fewer" inputs: "some" columns { first: 3 count: 4 } }
      layers { name: "b" inputs: "fewer" embedding { rows: 4 dim: 1 combiner: SUM } }
      layers { name: "c" inputs: "fewer" frozen: true embedding { rows: 3 dim: 4 } }
      layers { name: "y" inputs: ["all", "a", "b", "c"] concatenate {} })",
                                            kLoss));
  REQUIRE(graph.ok());
  const std::vector<IndexColumns> found = IndexColumnsOf(*graph);
  REQUIRE(found.size() == 4);
  const int64_t wanted[][3] = {{7, 0, 12}, {5, 2, 8}, {4, 5, 4}, {3, 5, 4}};
  for (int i = 0; i < 4; ++i) {
    CHECK(found[i].variable == i);
    CHECK(found[i].rows == wanted[i][0]);
    CHECK(found[i].columns.first == wanted[i][1]);
    CHECK(found[i].columns.count == wanted[i][2]);
  }
  CHECK(graph->variables()[3].frozen);
  CHECK_FALSE(graph->variables()[2].frozen);
}

TEST_CASE("What was computed is no row index") {
  for (const char* between : {"dense { units: 4 }", "relu {}", "flatten {}"}) {
    CAPTURE(between);
    const std::string error =
        BuildError(absl::StrCat("input_shape: 6 layers { name: 'x' ", between,
                                " } layers { name: 'some' columns { first: 1 count: 2 } }"
                                " layers { name: 'e' embedding { rows: 5 dim: 2 } }",
                                kLoss));
    CHECK_THAT(error, Contains("layer \"e\" (embedding): inputs: expected row indices"));
    CHECK_THAT(error, Contains("got \"some\", which is computed. Remedy: take \"input\""));
  }
}

TEST_CASE("Synthetic tables read row indices as embeddings do, all of a layer the same") {
  const auto graph = BuildText(absl::StrCat(R"(
      input_shape: 5
      layers { name: "some" columns { first: 1 count: 3 } }
      layers { name: "t" synthetic { variables: 2 elements: 4 rows: 9 } }
      layers { name: "d" synthetic { elements: 4 } })",
                                            kLoss));
  REQUIRE(graph.ok());
  const std::vector<IndexColumns> found = IndexColumnsOf(*graph);
  REQUIRE(found.size() == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(found[i].variable == i);
    CHECK(found[i].rows == 9);
    CHECK(found[i].columns.first == 1);
    CHECK(found[i].columns.count == 3);
  }
  CHECK_THAT(BuildError(absl::StrCat("input_shape: 6 layers { name: 'x' relu {} }"
                                     " layers { name: 't' synthetic { rows: 5 elements: 2 } }",
                                     kLoss)),
             Contains("layer \"t\" (synthetic): inputs: expected row indices"));
}

TEST_CASE("A model without embeddings has no row indices") {
  const auto graph = BuildText(
      absl::StrCat("input_shape: 4 layers { name: 'x' columns { first: 1 count: 2 } }", kLoss));
  REQUIRE(graph.ok());
  CHECK(IndexColumnsOf(*graph).empty());
}

}  // namespace
}  // namespace lockstep
