// lockstep demo: trains a model on real images, generated clicks or a text, here and now.
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/config/job.h"
#include "common/fs/atomic_file.h"
#include "common/fs/folder.h"
#include "common/fs/path.h"
#include "deploy/cli/check_run.h"
#include "deploy/cli/console.h"
#include "deploy/cli/finish_command.h"
#include "deploy/cli/json_output.h"
#include "deploy/cli/local_run.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/supervisor.h"
#include "deploy/data/clicks/click_files.h"

ABSL_FLAG(std::string, dataset, "digits",
          "digits (8x8, shipped), fashion (28x28, Fashion-MNIST), clicks (generated) or text "
          "(shipped)");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt, "instead of the job's own");
ABSL_FLAG(std::string, json, "", "write the summary to this file");
ABSL_FLAG(std::string, run_dir, "", "folder for all output; default: a new one in runs/");
ABSL_FLAG(std::string, bin_dir, "", "where ps/ps, worker/worker and chief/chief are");
ABSL_FLAG(std::string, examples_dir, "deploy/examples",
          "where digits/, fashion/, clicks/, text/ are");

namespace lockstep::deploy {
namespace {

constexpr absl::string_view kDatasets[] = {"digits", "fashion", "clicks", "text"};

constexpr char kUsage[] =
    "lockstep demo [--dataset=digits|fashion|clicks|text]\n"
    "\n"
    "Trains with 2 parameter servers, 3 workers (2 aggregated per step, 1 backup) and a chief on\n"
    "free loopback ports, evaluates on held-out examples and writes a checkpoint. digits and\n"
    "fashion train a convolutional network; clicks a wide-and-deep model with embeddings; text an\n"
    "LSTM over characters, with 2 workers and no backup.\n";

// The example's job with its output in the run's folder, as a file for the chief.
absl::Status WriteJob(const std::string& path, const JobDef& job) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  return WriteFileAtomically(path, text);
}

// Makes the data of the example, of which only the formula is shipped, in the run's folder.
absl::Status GenerateClicks(const std::string& run_dir, JobDef* job, Console* console) {
  const std::string folder = JoinPath(run_dir, "data");
  LOCKSTEP_RETURN_IF_ERROR(MakeFolders(folder));
  const ClickFilesOptions options;
  LOCKSTEP_ASSIGN_OR_RETURN(const ClickFigures figures, WriteClickFiles(folder, options));
  CsvFile* csv = job->mutable_data()->mutable_csv();
  csv->add_train(JoinPath(folder, "train.csv"));
  csv->set_test(JoinPath(folder, "test.csv"));
  console->Line(absl::StrCat("generated ", WithCommas(options.train), " examples to train on and ",
                             WithCommas(options.test), " to test with: ", folder));
  console->Line(absl::StrFormat(
      "the best possible test accuracy is %.2f %%, that of one answer for all %.2f %%",
      100 * figures.best_accuracy, 100 * figures.majority));
  return absl::OkStatus();
}

absl::StatusOr<int> Demo(Console* console) {
  const std::string dataset = absl::GetFlag(FLAGS_dataset);
  if (!absl::c_linear_search(kDatasets, dataset)) {
    return UsageError(absl::StrCat("--dataset: expected digits, fashion, clicks or text, got \"",
                                   dataset, "\". Remedy: --dataset=digits"));
  }
  LocalRunOptions options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.job, LoadJob(JoinPath(absl::GetFlag(FLAGS_examples_dir),
                                                          dataset + "/job.textproto")));
  LOCKSTEP_ASSIGN_OR_RETURN(JsonOutput json, JsonOutput::Create(absl::GetFlag(FLAGS_json)));
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  LOCKSTEP_ASSIGN_OR_RETURN(const RunFolder run_folder, run_dir.empty()
                                                            ? RunFolder::ClaimNew("demo-" + dataset)
                                                            : RunFolder::Claim(run_dir));
  options.run_dir = run_folder.path();
  JobDef& job = options.job.job;
  job.mutable_checkpoint()->set_folder(JoinPath(options.run_dir, "checkpoints"));
  if (const auto seed = absl::GetFlag(FLAGS_seed)) job.set_seed(*seed);
  if (dataset == "clicks") {
    LOCKSTEP_RETURN_IF_ERROR(GenerateClicks(options.run_dir, &job, console));
  }
  options.job_path = JoinPath(options.run_dir, "job.textproto");
  LOCKSTEP_RETURN_IF_ERROR(WriteJob(options.job_path, job));
  options.bin_dir = absl::GetFlag(FLAGS_bin_dir);
  // A folder that was named may have the checkpoints of an earlier demo.
  if (!absl::GetFlag(FLAGS_run_dir).empty()) options.start_flag = "--fresh";
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRun(options.job_path, job, {.mode = chief::StartMode::kFresh}).status());
  LOCKSTEP_ASSIGN_OR_RETURN(const LocalRunResult result, RunLocally(options, console));
  if (!result.summary) return result.exit_code;
  ShowResult(options, *result.summary, console);
  LOCKSTEP_RETURN_IF_ERROR(json.Write(result.summary->json));
  return result.exit_code;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  lockstep::deploy::Supervisor::BlockSignals();
  if (const auto flags =
          lockstep::HandleFlags("lockstep demo", lockstep::deploy::kUsage, argc, argv);
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  lockstep::deploy::Console console;
  return lockstep::deploy::FinishCommand("lockstep demo", lockstep::deploy::Demo(&console));
}
