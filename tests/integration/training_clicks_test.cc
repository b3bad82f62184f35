// The wide-and-deep example learns, on a part of its data.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "deploy/data/clicks/click_files.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

TEST_CASE("the click model gets far from guessing within one pass over a part of its data") {
  const TemporaryFolder folder;
  const auto figures = deploy::WriteClickFiles(folder.path(), {.train = 40000, .test = 8000});
  REQUIRE(figures.ok());
  std::ifstream file(Binary("deploy/examples/clicks/model.textproto"));
  std::stringstream model;
  model << file.rdbuf();
  Cluster cluster(2, 2);
  cluster.StartAll({.global_batch = 200,
                    .max_steps = 200,
                    .optimizer = "adam { lazy: true } learning_rate { base: 0.01 }",
                    .evaluation = "batch: 500",
                    .data = absl::StrCat("csv { train: '", folder.Path("train.csv"), "' test: '",
                                         folder.Path("test.csv"), "' label_column: 'click' }"),
                    .model = model.str(),
                    .more = "max_part_bytes: 1000000"});
  const nlohmann::json summary = Finish(cluster);
  const double accuracy = summary["test_accuracy"].get<double>();
  CAPTURE(figures->majority, figures->best_accuracy);
  CHECK(accuracy > figures->majority + 0.12);
  CHECK(accuracy < figures->best_accuracy);
}

}  // namespace
}  // namespace lockstep::test
