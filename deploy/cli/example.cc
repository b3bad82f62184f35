#include "deploy/cli/example.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/fs/atomic_file.h"
#include "common/fs/folder.h"
#include "common/fs/path.h"
#include "deploy/cli/check_run.h"
#include "deploy/data/clicks/click_files.h"

namespace lockstep::deploy {
namespace {

// As a file for the chief.
absl::Status WriteJob(const std::string& path, const JobDef& job) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  return WriteFileAtomically(path, text);
}

// In the run's folder.
absl::Status GenerateClicks(const std::string& run_dir, JobDef* job, Console* console) {
  const std::string folder = JoinPath(run_dir, "data");
  LOCKSTEP_RETURN_IF_ERROR(MakeFolders(folder));
  const ClickFilesOptions options;
  LOCKSTEP_ASSIGN_OR_RETURN(const ClickFigures figures, WriteClickFiles(folder, options));
  CsvFile* csv = job->mutable_data()->mutable_csv();
  csv->clear_train();
  csv->add_train(JoinPath(folder, "train.csv"));
  csv->set_test(JoinPath(folder, "test.csv"));
  console->Line(absl::StrCat("generated ", WithCommas(options.train), " examples to train on and ",
                             WithCommas(options.test), " to test with: ", folder));
  console->Line(absl::StrFormat(
      "the best possible test accuracy is %.2f %%, that of one answer for all %.2f %%",
      100 * figures.best_accuracy, 100 * figures.majority));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LocalRunOptions> PrepareExample(const Example& example, const std::string& run_dir,
                                               Console* console) {
  LocalRunOptions options;
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.job, LoadJob(JoinPath(example.examples_dir, example.dataset + "/job.textproto")));
  options.run_dir = run_dir;
  JobDef& job = options.job.job;
  job.mutable_checkpoint()->set_folder(JoinPath(run_dir, "checkpoints"));
  if (example.seed) job.set_seed(*example.seed);
  if (example.dataset == "clicks") {
    LOCKSTEP_RETURN_IF_ERROR(GenerateClicks(run_dir, &job, console));
  }
  options.job_path = JoinPath(run_dir, "job.textproto");
  LOCKSTEP_RETURN_IF_ERROR(WriteJob(options.job_path, job));
  options.bin_dir = example.bin_dir;
  if (example.may_have_run) options.start_flag = "--fresh";
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRun(options.job_path, job, {.mode = chief::StartMode::kFresh}).status());
  return options;
}

}  // namespace lockstep::deploy
