#include "deploy/cli/summary.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"

namespace lockstep::deploy {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargest = 1 << 20;

// The number under `name`; 0 when there is none.
template <typename T>
T Number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<T>() : T{};
}

}  // namespace

absl::StatusOr<Summary> ReadSummary(const std::string& path) {
  Summary summary;
  LOCKSTEP_ASSIGN_OR_RETURN(summary.json, ReadFile(path, kLargest));
  const Json json = Json::parse(summary.json, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(path, ": expected a JSON object"));
  const auto accuracy = json.find("test_accuracy");
  summary.has_test_accuracy = accuracy != json.end() && accuracy->is_number();
  summary.test_accuracy = Number<double>(json, "test_accuracy");
  summary.steps = Number<int64_t>(json, "steps");
  summary.start_step = Number<int64_t>(json, "start_step");
  summary.train_seconds = Number<double>(json, "train_seconds");
  summary.examples_per_second = Number<double>(json, "examples_per_second");
  summary.accepted = Number<uint64_t>(json, "accepted");
  summary.stale = Number<uint64_t>(json, "stale");
  const auto checkpoint = json.find("checkpoint");
  if (checkpoint != json.end() && checkpoint->is_string()) {
    summary.checkpoint = checkpoint->get<std::string>();
  }
  return summary;
}

std::string SummaryText(const Summary& summary) {
  std::string text =
      absl::StrCat("trained ", WithCommas(summary.steps - summary.start_step), " steps");
  if (summary.start_step > 0) {
    absl::StrAppend(&text, " (", WithCommas(summary.start_step), " to ", WithCommas(summary.steps),
                    ")");
  }
  absl::StrAppend(&text, " in ", SecondsText(summary.train_seconds), ", ",
                  RateText(summary.examples_per_second),
                  " examples/s; gradients: ", WithCommas(summary.accepted), " accepted, ",
                  WithCommas(summary.stale), " stale\n");
  if (summary.has_test_accuracy) {
    absl::StrAppend(&text,
                    absl::StrFormat("test accuracy  %.2f %%\n", 100 * summary.test_accuracy));
  }
  if (!summary.checkpoint.empty()) {
    absl::StrAppend(&text, "checkpoint     ", summary.checkpoint, "\n");
  }
  return text;
}

}  // namespace lockstep::deploy
