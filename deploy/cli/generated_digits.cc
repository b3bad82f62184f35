#include "deploy/cli/generated_digits.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"
#include "deploy/cli/child_process.h"

namespace lockstep::deploy {
namespace {

using Json = nlohmann::json;

constexpr int kPictured = 100;
constexpr int kJudged = 1000;
constexpr double kSure = 0.9;
constexpr size_t kLargest = 16 << 20;

std::vector<std::string> LayerArguments(const GeneratorOptions& options, int count, uint64_t seed) {
  return {"--checkpoint=" + options.checkpoint, "--layer=" + options.layer,
          absl::StrCat("--limit=", count), absl::StrCat("--seed=", seed)};
}

std::string IdxPath(const GeneratorOptions& options) {
  return JoinPath(options.run_dir, "generated.idx");
}

// Runs predict to its end, with its output in a log of this name.
absl::Status Predict(const GeneratorOptions& options, const std::string& name,
                     std::vector<std::string> arguments, const std::string& output) {
  Command command{.name = "predict",
                  .arguments = {options.predict, "predict"},
                  .log_path = JoinPath(options.run_dir, absl::StrCat("logs/", name, ".log"))};
  arguments.push_back(output);
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  return RunToEnd(command);
}

absl::StatusOr<Judgement> ReadJudgement(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargest));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("predictions")) {
    return absl::DataLossError(absl::StrCat(path, ": expected an object with \"predictions\""));
  }
  Judgement judgement;
  std::set<int64_t> classes;
  for (const Json& prediction : json["predictions"]) {
    ++judgement.images;
    if (prediction.value("probability", 0.0) < kSure) continue;
    ++judgement.sure;
    classes.insert(prediction.value("class", int64_t{-1}));
  }
  judgement.classes = static_cast<int64_t>(classes.size());
  return judgement;
}

}  // namespace

absl::StatusOr<std::string> GenerateImages(const GeneratorOptions& options) {
  const std::string grid = JoinPath(options.run_dir, "generated.png");
  LOCKSTEP_RETURN_IF_ERROR(Predict(
      options, "generate-grid", LayerArguments(options, kPictured, options.seed), "--png=" + grid));
  LOCKSTEP_RETURN_IF_ERROR(Predict(options, "generate-data",
                                   LayerArguments(options, kJudged, options.seed),
                                   "--idx=" + IdxPath(options)));
  return grid;
}

absl::StatusOr<Judgement> JudgeImages(const GeneratorOptions& options,
                                      const std::string& classifier) {
  const std::string json = JoinPath(options.run_dir, "judged.json");
  LOCKSTEP_RETURN_IF_ERROR(Predict(options, "judge",
                                   {"--checkpoint=" + classifier, "--data=" + IdxPath(options)},
                                   "--json=" + json));
  return ReadJudgement(json);
}

std::string MoreImagesCommand(const GeneratorOptions& options) {
  std::vector<std::string> words = {options.script, "predict"};
  for (std::string& word : LayerArguments(options, kPictured, options.seed + 1)) {
    words.push_back(std::move(word));
  }
  words.push_back("--png=more.png");
  return Command{.arguments = std::move(words)}.ToShell();
}

}  // namespace lockstep::deploy
