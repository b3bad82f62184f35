#include "common/config/job.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kModel[] = R"(name: "m" input_shape: 4
    layers { name: "fc" dense { units: 2 } }
    layers { name: "loss" softmax_cross_entropy {} })";

constexpr char kJob[] = R"(
    model: "../models/m.textproto"
    data { csv { train: "train.csv" test: "/data/./test.csv" label_column: "y" } }
    batch_per_tower: 4
    optimizer { adam {} learning_rate { base: 0.001 } }
    max_steps: 10
    checkpoint { folder: "checkpoints" })";

TEST_CASE("A job is read with its model, absolute paths and defaults") {
  test::TemporaryFolder folder;
  folder.Write("models/m.textproto", kModel);
  const auto loaded = LoadJob(folder.Write("jobs/iris.textproto", kJob));
  REQUIRE(loaded.ok());
  const JobDef& job = loaded->job;
  CHECK(loaded->model.name() == "m");
  CHECK(job.name() == "iris");
  CHECK(job.model() == folder.Path("models/m.textproto"));
  CHECK(job.data().csv().train(0) == folder.Path("jobs/train.csv"));
  CHECK(job.data().csv().test() == "/data/test.csv");
  CHECK(job.checkpoint().folder() == folder.Path("jobs/checkpoints"));
  CHECK(job.checkpoint().keep_last() == 3);
  CHECK(job.data().scale() == 1.0f);
  CHECK(job.data().prefetch() == 2);
  CHECK(job.towers() == 1);
  CHECK(job.evaluation().batch() == 256);
  CHECK_FALSE(job.evaluation().not_at_end());
  CHECK(job.optimizer().adam().beta1() == 0.9f);
  CHECK(job.optimizer().adam().beta2() == 0.999f);
  CHECK(job.optimizer().adam().epsilon() == 1e-8f);
  CHECK_FALSE(job.has_local());
}

TEST_CASE("A job named by a relative path has absolute paths inside") {
  test::TemporaryFolder folder;
  folder.Write("models/m.textproto", kModel);
  folder.Write("jobs/iris.textproto", kJob);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.Path("jobs"));
  const auto loaded = LoadJob("iris.textproto");
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(before);
  REQUIRE(loaded.ok());
  CHECK(loaded->job.data().csv().train(0) == (here / "train.csv").string());
}

TEST_CASE("Without a test set nothing is evaluated at the end") {
  test::TemporaryFolder folder;
  folder.Write("m.textproto", kModel);
  const auto loaded = LoadJob(folder.Write("job.textproto", R"(
      model: "m.textproto" data { csv { train: "t" label_column: "y" } } batch_per_tower: 1
      optimizer { sgd {} learning_rate { base: 1 } } max_steps: 1)"));
  REQUIRE(loaded.ok());
  CHECK(loaded->job.evaluation().not_at_end());
  CHECK(loaded->job.checkpoint().folder().empty());
}

TEST_CASE("A missing job or model is not found, by name") {
  test::TemporaryFolder folder;
  const auto no_job = LoadJob(folder.Path("job.textproto"));
  REQUIRE_FALSE(no_job.ok());
  CHECK(ExitCodeFor(no_job.status()) == ExitCode::kInputNotFound);
  CHECK_THAT(std::string(no_job.status().message()), Contains("job.textproto: cannot"));

  const auto no_model = LoadJob(folder.Write("jobs/iris.textproto", kJob));
  REQUIRE_FALSE(no_model.ok());
  CHECK(ExitCodeFor(no_model.status()) == ExitCode::kInputNotFound);
  CHECK_THAT(std::string(no_model.status().message()),
             Contains("iris.textproto: model: " + folder.Path("models/m.textproto") +
                      ": cannot open: No such file or directory. Remedy: "));
}

TEST_CASE("Paths above a job that is behind a symbolic link are those above the link's target") {
  test::TemporaryFolder folder;
  folder.Write("deep/models/m.textproto", kModel);
  folder.Write("deep/jobs/iris.textproto", kJob);
  std::filesystem::create_directory_symlink(folder.Path("deep/jobs"), folder.Path("jobs"));
  const auto loaded = LoadJob(folder.Path("jobs/iris.textproto"));
  REQUIRE(loaded.ok());
  CHECK(loaded->job.model() == folder.Path("jobs/../models/m.textproto"));
}

TEST_CASE("A job whose path is not UTF-8 text is refused") {
  test::TemporaryFolder folder;
  folder.Write("m\xfc/models/m.textproto", kModel);
  for (const std::string path : {"m\xfc/jobs/iris.textproto", "m\xfc/jobs/\xfc.textproto"}) {
    const auto loaded = LoadJob(folder.Write(path, kJob));
    CHECK(ExitCodeFor(loaded.status()) == ExitCode::kBadConfiguration);
    CHECK_THAT(std::string(loaded.status().message()),
               Contains("is not UTF-8 text") && Contains("Remedy: rename"));
  }
}

TEST_CASE("A mistake in the model names the model file") {
  test::TemporaryFolder folder;
  folder.Write("models/m.textproto", "input_shape: 4\nlayers { name: 'x' attention {} }");
  const auto loaded = LoadJob(folder.Write("jobs/iris.textproto", kJob));
  REQUIRE_FALSE(loaded.ok());
  CHECK(ExitCodeFor(loaded.status()) == ExitCode::kBadConfiguration);
  CHECK_THAT(
      std::string(loaded.status().message()),
      Contains("m.textproto:2:20: unknown field \"attention\" in layers. Remedy: use one of"));
}

TEST_CASE("A shift of examples that are no images is refused") {
  test::TemporaryFolder folder;
  folder.Write("m.textproto", kModel);
  const auto loaded = LoadJob(folder.Write("job.textproto", R"(
      model: "m.textproto" data { csv { train: "t" label_column: "y" } augmentation { shift: 1 } }
      batch_per_tower: 1 optimizer { sgd {} learning_rate { base: 1 } } max_steps: 1)"));
  REQUIRE_FALSE(loaded.ok());
  CHECK_THAT(std::string(loaded.status().message()),
             Contains("data.augmentation.shift: examples of shape [4] are no images"));
}

}  // namespace
}  // namespace lockstep
