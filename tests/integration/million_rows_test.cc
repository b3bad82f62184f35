// A job in each of whose steps a worker reads and pushes 3,000,000 rows of a table of 12 MB, which
// is in one part: more row indices than a message takes.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

constexpr int kExamples = 3000;
constexpr int kRowsOfExample = 1000;

constexpr char kModel[] = R"(
  input_shape: [1000]
  layers { name: "rows" embedding { rows: 3000000 dim: 1 } }
  layers { name: "scores" dense { units: 2 } }
  layers { name: "loss" softmax_cross_entropy {} })";

// No two of its numbers are equal, but for the label.
std::string Examples() {
  std::string csv;
  for (int example = 0; example < kExamples; ++example) {
    for (int i = 0; i < kRowsOfExample; ++i) {
      absl::StrAppend(&csv, example * kRowsOfExample + i, ",");
    }
    absl::StrAppend(&csv, example % 2, "\n");
  }
  return csv;
}

TEST_CASE("a step of 3,000,000 rows of a table trains, to the same bits in shared memory") {
  const TemporaryFolder folder;
  folder.Write("train.csv", Examples());
  const auto run = [&folder](const std::string& memory) {
    Cluster cluster(1, 1);
    cluster.StartAll({.global_batch = kExamples,
                      .max_steps = 4,
                      .optimizer = "adagrad {} learning_rate { base: 0.01 }",
                      .data = absl::StrCat("csv { train: '", folder.Path("train.csv"),
                                           "' label_column: '1000' no_header: true }"),
                      .model = kModel,
                      .more = "seed: 11 transport { shared_memory: " + memory + " }"});
    const std::vector<double> losses = Losses(Finish(cluster));
    CHECK(absl::StrContains(cluster.worker(0).Output(), "shares memory with ps 0") ==
          (memory != "OFF"));
    return losses;
  };
  const std::vector<double> losses = run("OFF");
  REQUIRE(losses.size() == 4);
  CHECK(losses.back() < losses.front());
  for (const std::string memory : {"COPY", "MAP"}) {
    CAPTURE(memory);
    CHECK(run(memory) == losses);
  }
}

}  // namespace
}  // namespace lockstep::test
