#include "deploy/cli/next_command.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

std::string ShellLine(std::vector<std::string> words) {
  const Command command{.arguments = std::move(words)};
  return std::string(absl::StripAsciiWhitespace(command.ToShell()));
}

std::string PredictCommand(const std::string& checkpoint, const DataDef& data) {
  return ShellLine(
      {"./lockstep", "predict", "--checkpoint=" + checkpoint, "--data=" + DataArgument(data)});
}

std::string ResumeText(const std::string& job_path, const JobDef& job) {
  const std::string& folder = job.checkpoint().folder();
  if (folder.empty()) return "";
  const absl::StatusOr<int64_t> newest = ReadLatest(folder);
  if (!newest.ok()) return "";
  return absl::StrCat("checkpoint     ", JoinPath(folder, CheckpointName(*newest)),
                      "\nTo go on from it:\n  ",
                      ShellLine({"./lockstep", "up", "--job=" + job_path, "--resume"}));
}

}  // namespace lockstep::deploy
