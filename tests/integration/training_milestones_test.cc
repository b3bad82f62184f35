// Evaluations and checkpoints on the way, which training does not wait for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr char kOptimizer[] = "optimizer { sgd {} learning_rate { base: 0.1 } }\n";

std::set<std::string> Names(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// A file of `count` bytes of pixels or labels.
std::string Idx(const std::string& header, size_t count, int classes) {
  std::string file = header;
  for (size_t i = 0; i < count; ++i) file += static_cast<char>(i * 7 % classes);
  return file;
}

// Test data whose evaluation takes longer than many steps of 24 examples.
std::string DataWithLargeTestSet(const TemporaryFolder& folder, int examples) {
  const std::string count = {static_cast<char>(examples >> 24), static_cast<char>(examples >> 16),
                             static_cast<char>(examples >> 8), static_cast<char>(examples)};
  const std::string extents("\0\0\0\x8\0\0\0\x8", 8);
  const std::string images = folder.Write(
      "images.idx", Idx(std::string("\0\0\x8\x3", 4) + count + extents, examples * 64ul, 17));
  const std::string labels =
      folder.Write("labels.idx", Idx(std::string("\0\0\x8\x1", 4) + count, examples, 10));
  const std::string digits = Binary("deploy/data/digits/");
  return absl::StrCat("data { idx { train_images: '", digits,
                      "train-images.idx.gz' train_labels: '", digits,
                      "train-labels.idx.gz' test_images: '", images, "' test_labels: '", labels,
                      "' } scale: 0.0625 }\n");
}

TEST_CASE("the last checkpoints are kept, and LATEST names the newest") {
  TrainingRun run({.workers = 2,
                   .ps = 2,
                   .job = DigitsData() + kOptimizer +
                          "global_batch: 24 max_steps: 55\n"
                          "checkpoint { folder: 'saved' every_steps: 10 keep_last: 2 }\n"});
  const nlohmann::json summary = run.Finish();
  CHECK(summary["checkpoint"] == run.Path("saved/ckpt-55"));
  const std::set<std::string> names = Names(run.Path("saved"));
  REQUIRE(names.size() == 3);
  CHECK(names.count("LATEST") == 1);
  CHECK(names.count("ckpt-55") == 1);
  std::ifstream latest(run.Path("saved/LATEST"));
  std::string newest;
  CHECK(std::getline(latest, newest));
  CHECK(newest == "ckpt-55");
  for (const std::string& name : names) {
    if (name == "LATEST") continue;
    CHECK(Names(run.Path("saved/" + name)) == std::set<std::string>{"manifest.json",
                                                                    "shard-0-of-2.safetensors",
                                                                    "shard-1-of-2.safetensors"});
  }
}

TEST_CASE("training goes on while the test set is evaluated, and the evaluation sees one version") {
  const TemporaryFolder data;
  const std::string job =
      DataWithLargeTestSet(data, 30'000) + kOptimizer + "global_batch: 24 max_steps: 200\n";
  TrainingRun run({.workers = 2,
                   .job = job + "evaluation { every_steps: 10 }\n"
                                "checkpoint { folder: 'saved' every_steps: 10 keep_last: 99 }\n"});
  const nlohmann::json summary = run.Finish();
  const nlohmann::json& evaluations = summary["evaluations"];
  REQUIRE(evaluations.size() >= 2);
  // Steps at which the one before was not done yet have none.
  CHECK(evaluations.size() < 20);
  CHECK(evaluations.front()["step"] == 10);
  CHECK(evaluations.back()["step"] == 200);
  CHECK(Losses(summary) == LossesOf({.workers = 2, .job = job}));

  for (const nlohmann::json& evaluation : {evaluations.front(), evaluations.back()}) {
    const std::string saved = absl::StrCat("saved/ckpt-", evaluation["step"].get<int>());
    const Ended offline =
        RunToEnd({Binary("worker/predict"), "evaluate", "--threads=1",
                  "--checkpoint=" + run.Path(saved), "--json=" + data.Path("offline.json")},
                 absl::Minutes(1));
    CAPTURE(offline.output);
    REQUIRE(offline.exit_code == 0);
    const auto alone = nlohmann::json::parse(data.Read("offline.json"), nullptr, false);
    CHECK(evaluation["examples"] == 30'000);
    CHECK(evaluation["accuracy"] == alone["accuracy"]);
    CHECK(evaluation["loss"].get<double>() == Approx(alone["loss"].get<double>()).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace lockstep::test
