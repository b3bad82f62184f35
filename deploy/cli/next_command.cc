#include "deploy/cli/next_command.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/latest.h"
#include "common/fs/path.h"
#include "deploy/cli/child_process.h"

namespace lockstep::deploy {
namespace {

std::string DataArgument(const DataDef& data) {
  if (data.has_text()) return data.text().path();
  if (data.has_csv()) return data.csv().test().empty() ? data.csv().train(0) : data.csv().test();
  const IdxFiles& idx = data.idx();
  if (idx.test_images().empty()) return absl::StrCat(idx.train_images(0), ",", idx.train_labels(0));
  return absl::StrCat(idx.test_images(), ",", idx.test_labels());
}

// The files of rows that go with DataArgument's examples, in the model's order. Zeros have none.
std::vector<std::string> StateFiles(const LoadedJob& job) {
  std::vector<std::string> files;
  for (const StateInput& input : job.model.state_inputs()) {
    for (const StateInputData& state : job.job.data().state_inputs()) {
      if (state.name() != input.name() || state.zeros()) continue;
      files.push_back(state.test().empty() ? state.train(0) : state.test());
    }
  }
  return files;
}

}  // namespace

std::string ShellLine(std::vector<std::string> words) {
  const Command command{.arguments = std::move(words)};
  return std::string(absl::StripAsciiWhitespace(command.ToShell()));
}

std::string ScriptBeside(const std::string& bin_dir) {
  const std::string checkout = FolderOf(bin_dir);
  std::string script = JoinPath(checkout, "lockstep");
  std::error_code error;
  const bool is_script = std::filesystem::is_regular_file(script, error);
  if (!is_script || std::filesystem::equivalent(checkout, ".", error)) return "./lockstep";
  return script;
}

std::string PredictCommand(const std::string& script, const std::string& checkpoint,
                           const LoadedJob& job) {
  std::vector<std::string> words = {script, "predict", "--checkpoint=" + checkpoint,
                                    "--data=" + DataArgument(job.job.data())};
  const std::vector<std::string> states = StateFiles(job);
  if (states.empty()) return ShellLine(std::move(words));
  if (static_cast<int>(states.size()) < job.model.state_inputs_size()) return "";
  words.push_back("--states=" + absl::StrJoin(states, ","));
  return ShellLine(std::move(words));
}

std::string ResumeText(const std::string& script, const std::string& job_path, const JobDef& job,
                       const std::vector<std::string>& flags) {
  const std::string& folder = job.checkpoint().folder();
  if (folder.empty()) return "";
  const absl::StatusOr<int64_t> newest = ReadLatest(folder);
  if (!newest.ok()) return "";
  std::vector<std::string> words = {script, "up", "--job=" + job_path, "--resume"};
  words.insert(words.end(), flags.begin(), flags.end());
  return absl::StrCat("checkpoint     ", JoinPath(folder, CheckpointName(*newest)),
                      "\nTo go on from it:\n  ", ShellLine(std::move(words)));
}

}  // namespace lockstep::deploy
