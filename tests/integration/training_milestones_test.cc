// Evaluations and checkpoints on the way, which training does not wait for.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr char kSgd[] = "sgd {} learning_rate { base: 0.1 }";

std::set<std::string> Names(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// An IDX file of unsigned bytes below `limit`.
std::string Idx(const std::vector<uint32_t>& extents, int limit) {
  std::string file = {'\0', '\0', '\x8', static_cast<char>(extents.size())};
  size_t count = 1;
  for (const uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(extent >> shift);
    count *= extent;
  }
  for (size_t i = 0; i < count; ++i) file += static_cast<char>(i * 7 % limit);
  return file;
}

// The digits, but for a test set that takes longer to evaluate than many steps take.
std::string DataWithLargeTestSet(const TemporaryFolder& folder, uint32_t examples) {
  const std::string train = Binary("deploy/data/digits/train-");
  const std::string images = folder.Write("images.idx", Idx({examples, 8, 8}, 17));
  const std::string labels = folder.Write("labels.idx", Idx({examples}, 10));
  return absl::StrCat("idx { train_images: '", train, "images.idx.gz' train_labels: '", train,
                      "labels.idx.gz' test_images: '", images, "' test_labels: '", labels,
                      "' } scale: 0.0625");
}

TEST_CASE("the last checkpoints are kept, and LATEST names the newest") {
  const TemporaryFolder saved;
  Cluster cluster(2, 2);
  cluster.StartAll({.global_batch = 24,
                    .max_steps = 55,
                    .optimizer = kSgd,
                    .checkpoint = "folder: '" + saved.path() + "' every_steps: 10 keep_last: 2"});
  CHECK(Finish(cluster)["checkpoint"] == saved.Path("ckpt-55"));
  const std::set<std::string> names = Names(saved.path());
  CHECK(names.size() == 5);
  CHECK(names.count("OWNER.json") + names.count("LOCK") == 2);
  CHECK(names.count("ckpt-55") == 1);
  CHECK(saved.Read("LATEST") == "ckpt-55\n");
  for (const std::string& name : names) {
    if (!std::filesystem::is_directory(saved.Path(name))) continue;
    CHECK(Names(saved.Path(name)) == std::set<std::string>{"manifest.json",
                                                           "shard-0-of-2.safetensors",
                                                           "shard-1-of-2.safetensors"});
  }
}

TEST_CASE("training goes on while the test set is evaluated, and the evaluation sees one version") {
  const TemporaryFolder folder;
  JobText job = {.global_batch = 24,
                 .max_steps = 200,
                 .optimizer = kSgd,
                 .evaluation = "not_at_end: true",
                 .data = DataWithLargeTestSet(folder, 30'000),
                 .model = kPlainModel};
  const std::vector<double> undisturbed = LossesOf(1, 2, job);
  job.evaluation = "every_steps: 10";
  job.checkpoint = "folder: '" + folder.path() + "' every_steps: 10 keep_last: 99";
  Cluster cluster(1, 2);
  cluster.StartAll(job);
  const nlohmann::json summary = Finish(cluster);
  CHECK(Losses(summary) == undisturbed);

  const nlohmann::json& evaluations = summary["evaluations"];
  REQUIRE(evaluations.size() >= 2);
  // A step that came before the evaluation of an earlier one was done has none.
  CHECK(evaluations.size() < 20);
  CHECK(evaluations.front()["step"] == 10);
  CHECK(evaluations.back()["step"] == 200);
  for (const nlohmann::json& evaluation : {evaluations.front(), evaluations.back()}) {
    const auto alone =
        EvaluateAlone(folder.Path(absl::StrCat("ckpt-", evaluation["step"].get<int>())));
    CHECK(evaluation["examples"] == 30'000);
    CHECK(evaluation["accuracy"] == alone["accuracy"]);
    CHECK(evaluation["loss"].get<double>() == Approx(alone["loss"].get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("a worker that starts during the last evaluation needs no data for a further step") {
  const TemporaryFolder folder;
  const std::string epoch_of_23_steps =
      "transform { map { function: 'scale' } } transform { batch { drop_remainder: true } }";
  Cluster cluster(1, 1);
  cluster.StartAll(
      {.max_steps = 23,
       .evaluation = "batch: 1",
       .data = absl::StrCat(DataWithLargeTestSet(folder, 30'000), " ", epoch_of_23_steps),
       .model = kPlainModel});
  const bool is_trained = cluster.WaitForStep(22, absl::Minutes(1));
  INFO(cluster.Logs());
  REQUIRE(is_trained);
  cluster.worker(0).Signal(SIGKILL);
  REQUIRE(cluster.worker(0).Wait(absl::Seconds(5)) == 137);
  REQUIRE(cluster.chief().running());
  cluster.StartWorker(0);
  const nlohmann::json evaluation = Finish(cluster)["evaluations"].back();
  CHECK(evaluation["step"] == 23);
  CHECK(evaluation["examples"] == 30'000);
}

}  // namespace
}  // namespace lockstep::test
