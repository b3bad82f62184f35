#include "deploy/cli/summary.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"
#include "deploy/cli/state_text.h"

namespace lockstep::deploy {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargest = 16 << 20;

// The number under `name`; nothing when there is none.
template <typename T>
std::optional<T> Find(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<T>();
}

template <typename T>
T Number(const Json& json, const char* name) {
  return Find<T>(json, name).value_or(T{});
}

std::string Text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

bool Flag(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

// Its objects; none when it is something else.
std::vector<Json> Objects(const Json& json, const char* name) {
  std::vector<Json> objects;
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return objects;
  for (const Json& element : *found) {
    if (element.is_object()) objects.push_back(element);
  }
  return objects;
}

// null stands for a number that is not finite.
double OrNan(std::optional<double> number) { return number.value_or(std::nan("")); }

EvaluationSummary ReadEvaluation(const Json& json) {
  EvaluationSummary evaluation;
  evaluation.set_step(Number<int64_t>(json, "step"));
  evaluation.set_examples(Number<int64_t>(json, "examples"));
  evaluation.set_accuracy(OrNan(Find<double>(json, "accuracy")));
  evaluation.set_loss(OrNan(Find<double>(json, "loss")));
  evaluation.set_averages(Flag(json, "averages"));
  evaluation.set_regression(Flag(json, "regression"));
  return evaluation;
}

}  // namespace

absl::StatusOr<Summary> ReadSummary(const std::string& path) {
  Summary summary;
  LOCKSTEP_ASSIGN_OR_RETURN(summary.json, ReadFile(path, kLargest));
  const Json json = Json::parse(summary.json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(path, ": expected a JSON object"));
  summary.steps = Number<int64_t>(json, "steps");
  summary.start_step = Number<int64_t>(json, "start_step");
  if (json.contains("loss") && summary.steps > summary.start_step) {
    summary.loss = OrNan(Find<double>(json, "loss"));
  }
  summary.test_accuracy = Find<double>(json, "test_accuracy");
  for (const Json& evaluation : Objects(json, "evaluations")) {
    summary.evaluations.push_back(ReadEvaluation(evaluation));
  }
  if (!summary.evaluations.empty()) {
    summary.test_loss = summary.evaluations.back().loss();
    summary.averages = summary.evaluations.back().averages();
  }
  for (const Json& element : Objects(json, "warnings")) {
    JobWarning& warning = summary.warnings.emplace_back();
    warning.set_number(Number<uint64_t>(element, "number"));
    warning.set_text(Text(element, "text"));
  }
  summary.test_bits_per_character = Find<double>(json, "test_bits_per_character");
  summary.train_seconds = Number<double>(json, "train_seconds");
  summary.examples_per_second = Number<double>(json, "examples_per_second");
  summary.accepted = Number<uint64_t>(json, "accepted");
  summary.stale = Number<uint64_t>(json, "stale");
  summary.variables_per_gradient =
      std::max<uint32_t>(Number<uint32_t>(json, "variables_per_gradient"), 1);
  summary.checkpoint = Text(json, "checkpoint");
  return summary;
}

std::string SummaryText(const Summary& summary) {
  std::string text =
      absl::StrCat("trained ", CountText(summary.steps - summary.start_step, "step"));
  if (summary.start_step > 0) {
    absl::StrAppend(&text, " (", WithCommas(summary.start_step), " to ", WithCommas(summary.steps),
                    ")");
  }
  absl::StrAppend(&text, " in ", SecondsText(summary.train_seconds), ", ",
                  RateText(summary.examples_per_second), " examples/s; gradients: ",
                  GradientsText(summary.accepted, summary.stale, summary.variables_per_gradient),
                  "\n");
  if (summary.loss) absl::StrAppend(&text, "training loss  ", LossText(*summary.loss), "\n");
  const std::string values = summary.averages ? " (averages)" : "";
  if (summary.test_accuracy) {
    absl::StrAppend(&text, "test accuracy  ", PercentText(*summary.test_accuracy), values, "\n");
  }
  if (summary.test_loss) {
    absl::StrAppend(&text, "test loss      ", LossText(*summary.test_loss), values, "\n");
  }
  if (summary.test_bits_per_character) {
    absl::StrAppendFormat(&text, "bits per character  %.3f%s\n", *summary.test_bits_per_character,
                          values);
  }
  if (!summary.checkpoint.empty()) {
    absl::StrAppend(&text, "checkpoint     ", summary.checkpoint, "\n");
  }
  return text;
}

std::string DivergenceWarning(const Summary& summary) {
  for (const std::optional<double>& loss : {summary.loss, summary.test_loss}) {
    if (!loss || std::isfinite(*loss)) continue;
    return absl::StrCat("warning: training has diverged: the last loss is ", LossText(*loss),
                        ", and the model is of no use. Remedy: lower the learning rate, check the "
                        "data");
  }
  return "";
}

}  // namespace lockstep::deploy
