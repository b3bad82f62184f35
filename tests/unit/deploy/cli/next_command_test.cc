#include "deploy/cli/next_command.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

constexpr char kScript[] = "./lockstep";

TEST_CASE("commands name the script by a path that leads to it from the current folder") {
  const test::TemporaryFolder folder;
  const std::string programs = folder.Path("bazel-bin");
  CHECK(ScriptBeside(programs) == kScript);
  std::filesystem::create_directory(folder.Path("lockstep"));
  CHECK(ScriptBeside(programs) == kScript);
  std::filesystem::remove(folder.Path("lockstep"));
  folder.Write("lockstep", "");
  CHECK(ScriptBeside(programs) == folder.Path("lockstep"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK(ScriptBeside(programs) == kScript);
  std::filesystem::current_path(before);
}

TEST_CASE("the model is used on the test examples, or on those that it was trained on") {
  LoadedJob job;
  DataDef& data = *job.job.mutable_data();
  data.mutable_csv()->add_train(std::string("/d/train.csv"));
  CHECK(PredictCommand(kScript, "/c/ckpt-7", job) ==
        "./lockstep predict --checkpoint=/c/ckpt-7 --data=/d/train.csv");
  data.mutable_csv()->set_test("/my data/test.csv");
  CHECK(PredictCommand(kScript, "/c/ckpt-7", job) ==
        "./lockstep predict --checkpoint=/c/ckpt-7 '--data=/my data/test.csv'");
  data.mutable_idx()->add_train_images(std::string("/d/i"));
  data.clear_csv();
  data.mutable_idx()->add_train_labels(std::string("/d/l"));
  CHECK(PredictCommand(kScript, "/c", job) ==
        "./lockstep predict --checkpoint=/c --data=/d/i,/d/l");
}

TEST_CASE("the rows of a model's state inputs are named in the order of the model") {
  LoadedJob job;
  for (const char* name : {"h", "c"}) job.model.add_state_inputs()->set_name(name);
  DataDef& data = *job.job.mutable_data();
  data.mutable_csv()->set_test("/test.csv");
  for (const char* name : {"c", "h"}) {
    StateInputData* const state = data.add_state_inputs();
    state->set_name(name);
    state->add_train(absl::StrCat("/train-", name));
  }
  data.mutable_state_inputs(1)->set_test("/test-h");
  CHECK(PredictCommand(kScript, "/c", job) ==
        "./lockstep predict --checkpoint=/c --data=/test.csv --states=/test-h,/train-c");
  data.mutable_state_inputs(0)->set_zeros(true);
  CHECK(PredictCommand(kScript, "/c", job).empty());
  data.mutable_state_inputs(1)->set_zeros(true);
  CHECK(PredictCommand(kScript, "/c", job) ==
        "./lockstep predict --checkpoint=/c --data=/test.csv");
}

TEST_CASE("a run that was ended goes on from its newest checkpoint, where there is one") {
  const test::TemporaryFolder folder;
  JobDef job;
  CHECK(ResumeText(kScript, "job.textproto", job, {}).empty());
  job.mutable_checkpoint()->set_folder(folder.path());
  CHECK(ResumeText(kScript, "job.textproto", job, {}).empty());
  folder.Write("LATEST", "ckpt-2031\n");
  CHECK(ResumeText(kScript, "job.textproto", job, {}) ==
        "checkpoint     " + folder.path() +
            "/ckpt-2031\nTo go on from it:\n  ./lockstep up --job=job.textproto --resume");
  CHECK(absl::EndsWith(ResumeText(kScript, "job.textproto", job, {"--tls", "--standby"}),
                       "up --job=job.textproto --resume --tls --standby"));
  folder.Write("LATEST", "nonsense\n");
  CHECK(ResumeText(kScript, "job.textproto", job, {}).empty());
}

}  // namespace
}  // namespace lockstep::deploy
