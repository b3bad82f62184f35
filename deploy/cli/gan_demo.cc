#include "deploy/cli/gan_demo.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/fs/path.h"
#include "deploy/cli/generated_digits.h"
#include "deploy/cli/next_command.h"
#include "deploy/cli/run_folder.h"
#include "deploy/cli/state_text.h"

namespace lockstep::deploy {
namespace {

using Json = nlohmann::json;

constexpr char kImageLayer[] = "g_image";

std::string WithJudgement(const std::string& summary, const std::string& grid,
                          const Judgement& judgement) {
  Json json = Json::parse(summary, nullptr, /*allow_exceptions=*/false);
  json["generated"] = {{"grid", grid},
                       {"images", judgement.images},
                       {"sure", judgement.sure},
                       {"classes", judgement.classes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The images are in units of the digits' data: the classifier reads them as such.
absl::StatusOr<LocalRunResult> TrainClassifier(const LocalRunOptions& generator, const Example& gan,
                                               Console* console) {
  LOCKSTEP_ASSIGN_OR_RETURN(const RunFolder folder,
                            RunFolder::Claim(JoinPath(generator.run_dir, "classifier")));
  Example digits = gan;
  digits.dataset = "digits";
  digits.seed.reset();
  LOCKSTEP_ASSIGN_OR_RETURN(const LocalRunOptions options,
                            PrepareExample(digits, folder.path(), console));
  return RunLocally(options, console);
}

}  // namespace

absl::StatusOr<GanDemoResult> ShowGenerated(const LocalRunOptions& options, const Summary& summary,
                                            const Example& gan, Console* console) {
  const GeneratorOptions generator{.predict = JoinPath(ProgramFolder(options), "worker/predict"),
                                   .script = ScriptBeside(ProgramFolder(options)),
                                   .run_dir = options.run_dir,
                                   .checkpoint = summary.checkpoint,
                                   .layer = kImageLayer,
                                   .seed = options.job.job.seed()};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string grid, GenerateImages(generator));
  console->Line("training the network of --dataset digits, which judges what was generated");
  LOCKSTEP_ASSIGN_OR_RETURN(const LocalRunResult judge, TrainClassifier(options, gan, console));
  if (!judge.summary) return GanDemoResult{.exit_code = judge.exit_code};
  LOCKSTEP_ASSIGN_OR_RETURN(const Judgement judgement,
                            JudgeImages(generator, judge.summary->checkpoint));
  const double share = static_cast<double>(judgement.sure) / static_cast<double>(judgement.images);
  console->Line(absl::StrFormat(
      "of %s generated images the digits' network is at least 90 %% sure of %.1f %%, and sees "
      "%d classes in them\ngenerated      %s\nTo draw others:\n  %s",
      WithCommas(judgement.images), 100 * share, judgement.classes, grid,
      MoreImagesCommand(generator)));
  return GanDemoResult{.json = WithJudgement(summary.json, grid, judgement)};
}

}  // namespace lockstep::deploy
