// lockstep demo: trains a model on real images, generated clicks or a text, here and now.
#include <cstdint>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "deploy/cli/console.h"
#include "deploy/cli/example.h"
#include "deploy/cli/finish_command.h"
#include "deploy/cli/gan_demo.h"
#include "deploy/cli/json_output.h"
#include "deploy/cli/local_run.h"
#include "deploy/cli/run_folder.h"

ABSL_FLAG(std::string, dataset, "digits",
          "digits (8x8, shipped), fashion (28x28, Fashion-MNIST), clicks (generated), text "
          "(shipped) or gan (which learns to draw the digits)");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt, "instead of the job's own");
ABSL_FLAG(std::string, json, "", "write the summary to this file");
ABSL_FLAG(std::string, run_dir, "", "folder for all output; default: a new one in runs/");
ABSL_FLAG(std::string, bin_dir, "", "where ps/ps, worker/worker and chief/chief are");
ABSL_FLAG(std::string, examples_dir, "deploy/examples",
          "where digits/, fashion/, clicks/, text/, gan/ are");

namespace lockstep::deploy {
namespace {

constexpr absl::string_view kDatasets[] = {"digits", "fashion", "clicks", "text", "gan"};

constexpr char kUsage[] =
    "lockstep demo [--dataset=digits|fashion|clicks|text|gan]\n"
    "\n"
    "Trains with 2 parameter servers, 3 workers (2 aggregated per step, 1 backup) and a chief on\n"
    "free loopback ports, evaluates on held-out examples and writes a checkpoint. digits and\n"
    "fashion train a convolutional network; clicks a wide-and-deep model with embeddings; text an\n"
    "LSTM over characters, with 2 workers and no backup; gan, with 2 workers too, a generator of\n"
    "digits and a discriminator in turns, and then has the network of digits judge the images.\n";

absl::StatusOr<int> Demo(Console* console) {
  const std::string dataset = absl::GetFlag(FLAGS_dataset);
  if (!absl::c_linear_search(kDatasets, dataset)) {
    return UsageError(absl::StrCat("--dataset: expected one of ", absl::StrJoin(kDatasets, ", "),
                                   ", got \"", dataset, "\". Remedy: --dataset=digits"));
  }
  const std::string run_dir = absl::GetFlag(FLAGS_run_dir);
  const Example example{.dataset = dataset,
                        .examples_dir = absl::GetFlag(FLAGS_examples_dir),
                        .bin_dir = absl::GetFlag(FLAGS_bin_dir),
                        .seed = absl::GetFlag(FLAGS_seed),
                        .may_have_run = !run_dir.empty()};
  LOCKSTEP_ASSIGN_OR_RETURN(JsonOutput json, JsonOutput::Create(absl::GetFlag(FLAGS_json)));
  LOCKSTEP_ASSIGN_OR_RETURN(const RunFolder run_folder, run_dir.empty()
                                                            ? RunFolder::ClaimNew("demo-" + dataset)
                                                            : RunFolder::Claim(run_dir));
  LOCKSTEP_ASSIGN_OR_RETURN(const LocalRunOptions options,
                            PrepareExample(example, run_folder.path(), console));
  LOCKSTEP_ASSIGN_OR_RETURN(const LocalRunResult result, RunLocally(options, console));
  if (!result.summary) return result.exit_code;
  ShowResult(options, *result.summary, console);
  GanDemoResult shown{.exit_code = result.exit_code, .json = result.summary->json};
  if (dataset == "gan") {
    LOCKSTEP_ASSIGN_OR_RETURN(shown, ShowGenerated(options, *result.summary, example, console));
  }
  if (!shown.json.empty()) LOCKSTEP_RETURN_IF_ERROR(json.Write(shown.json));
  return shown.exit_code;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  lockstep::OpenStandardStreams();
  // The run goes on when the reader of its output has gone.
  lockstep::IgnoreBrokenPipes();
  if (const auto flags =
          lockstep::HandleFlags("lockstep demo", lockstep::deploy::kUsage, argc, argv);
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  lockstep::deploy::Console console;
  return lockstep::deploy::FinishCommand("lockstep demo", lockstep::deploy::Demo(&console));
}
