#include "deploy/cli/check_run.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/exit_code.h"
#include "common/config/job.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;

constexpr char kJob[] = R"(
  model: "model.textproto"
  data { csv { train: "train.csv" label_column: "y" } }
  global_batch: 4
  max_steps: 10
  optimizer { sgd {} learning_rate { base: 0.5 } }
  local { ps: 1 workers: 2 }
)";
constexpr char kModel[] = R"(
  input_shape: [2]
  layers { name: "fc" dense { units: 3 } }
  layers { name: "loss" softmax_cross_entropy {} }
)";
constexpr char kTrain[] = "a,b,y\n1,2,0\n3,4,1\n";

// A sound job with parts of its three files replaced.
struct Texts {
  std::string job = kJob;
  std::string model = kModel;
  std::string train = kTrain;
};

absl::StatusOr<std::string> Check(const Texts& texts) {
  const test::TemporaryFolder folder;
  folder.Write("model.textproto", texts.model);
  folder.Write("train.csv", texts.train);
  const std::string path = folder.Write("job.textproto", texts.job);
  const auto loaded = LoadJob(path);
  REQUIRE(loaded.ok());
  return CheckRun(path, loaded->job, {});
}

std::string ErrorOf(const Texts& texts, ExitCode code) {
  const absl::Status status = Check(texts).status();
  INFO(status.ToString());
  CHECK(ExitCodeFor(status) == code);
  CHECK_THAT(std::string(status.message()), Contains("Remedy: "));
  return std::string(status.message());
}

std::string With(const std::string& text, const std::string& from, const std::string& to) {
  return absl::StrReplaceAll(text, {{from, to}});
}

TEST_CASE("A sound job passes without a warning") {
  const auto checked = Check({});
  INFO(checked.status().ToString());
  REQUIRE(checked.ok());
  CHECK(checked->empty());
}

TEST_CASE("Mistakes in the cluster, the model graph and the data are found before a start") {
  const ExitCode bad = ExitCode::kBadConfiguration;
  CHECK_THAT(ErrorOf({.job = With(kJob, "local { ps: 1 workers: 2 }", "")}, bad),
             Contains("job.textproto: local: expected at least 1 ps"));
  CHECK_THAT(ErrorOf({.job = With(kJob, "global_batch: 4", "global_batch: 3")}, bad),
             Contains("job.textproto: global_batch: expected a multiple of 2"));
  CHECK_THAT(ErrorOf({.model = With(kModel, "units: 3", "units: -3")}, bad),
             Contains("model.textproto: layer \"fc\" (dense): units: expected"));
  CHECK_THAT(ErrorOf({.job = With(kJob, "train.csv", "absent.csv")}, ExitCode::kInputNotFound),
             Contains("absent.csv: cannot open"));
  CHECK_THAT(ErrorOf({.train = "a,b,y\n1,2,0\n1,x,1\n"}, ExitCode::kCorruptInput),
             Contains("train.csv: line 3: column \"b\": expected a finite number, got \"x\""));
  CHECK_THAT(ErrorOf({.model = With(kModel, "[2]", "[3]")}, bad),
             Contains("train.csv: examples have the shape [2], the model's input is [3]"));
}

TEST_CASE("A checkpoint folder that cannot be made is found before a start") {
  CHECK_THAT(ErrorOf({.job = kJob + std::string("checkpoint { folder: \"train.csv\" }")},
                     ExitCode::kCannotCreate),
             Contains("job.textproto: checkpoint.folder: ") &&
                 Contains("Remedy: name a folder in which this user may write"));
}

// Modes of files apply to this thread, also where it is root's.
class WithoutRootAccess {
 public:
  WithoutRootAccess() {
    REQUIRE(::syscall(SYS_capget, &header_, before_) == 0);
    __user_cap_data_struct changed[2] = {before_[0], before_[1]};
    changed[0].effective &= ~(1u << CAP_DAC_OVERRIDE);
    REQUIRE(::syscall(SYS_capset, &header_, changed) == 0);
  }
  ~WithoutRootAccess() { ::syscall(SYS_capset, &header_, before_); }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2];
};

TEST_CASE("A checkpoint folder that cannot be written is found before a start") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Path("checkpoints");
  std::filesystem::create_directory(path);
  const std::string job = kJob + absl::StrCat("checkpoint { folder: \"", path, "\" }");
  CHECK(Check({.job = job}).ok());
  std::filesystem::permissions(path, std::filesystem::perms(0555));
  const WithoutRootAccess access;
  CHECK_THAT(ErrorOf({.job = job}, ExitCode::kCannotCreate),
             Contains("job.textproto: checkpoint.folder: " + path +
                      ": cannot write: Permission denied. Remedy: name a folder in which this "
                      "user may write"));
}

TEST_CASE("A number of steps that cannot be is found before a start") {
  CHECK_THAT(ErrorOf({.job = With(kJob, "max_steps: 10", "data_epochs: 1e300")},
                     ExitCode::kBadConfiguration),
             Contains("data_epochs: "));
}

TEST_CASE("A folder with checkpoints is found before a start that says nothing about them") {
  const test::TemporaryFolder folder;
  folder.Write("model.textproto", kModel);
  folder.Write("train.csv", kTrain);
  const std::string path =
      folder.Write("job.textproto", kJob + std::string("checkpoint { folder: \"saved\" }"));
  const auto loaded = LoadJob(path);
  REQUIRE(loaded.ok());
  REQUIRE(CheckRun(path, loaded->job, {}).ok());
  std::filesystem::create_directory(folder.Path("saved/ckpt-4"));
  folder.Write("saved/ckpt-4/manifest.json", "{}");
  const absl::Status refused = CheckRun(path, loaded->job, {}).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()),
             Contains("saved/ckpt-4 is of an earlier run") && Contains("Remedy: --resume"));
  CHECK(CheckRun(path, loaded->job, {.mode = chief::StartMode::kFresh}).ok());
}

TEST_CASE("Labels that do not fit the model are found before a start") {
  CHECK_THAT(ErrorOf({.train = "a,b,y\n1,2,0\n1,2,3\n"}, ExitCode::kBadConfiguration),
             Contains("train.csv: line 3: label 3, expected a whole number from 0 to 2, one for "
                      "each output of the model. Remedy: give the model 4 outputs (units)"));
  CHECK_THAT(ErrorOf({.model = With(kModel, "softmax_cross_entropy", "l2_loss")},
                     ExitCode::kBadConfiguration),
             Contains("train.csv: a CSV file has one target, the label_column, and the model has 3 "
                      "outputs. Remedy: give the layer before l2_loss one output (units: 1)"));
}

TEST_CASE("A wire type that one machine never uses is a warning") {
  const auto with = [](const std::string& transport) {
    const auto checked = Check({.job = kJob + ("transport {" + transport + "}")});
    REQUIRE(checked.ok());
    return *checked;
  };
  CHECK_THAT(
      with("wire_type: BFLOAT16"),
      Contains("transport.wire_type: BFLOAT16 has no effect here: on one machine all tensors "
               "go through shared memory. Remedy: "));
  CHECK(with("wire_type: BFLOAT16 shared_memory: OFF").empty());
  CHECK(with("wire_type: FLOAT32").empty());
}

}  // namespace
}  // namespace lockstep::deploy
