#include "tests/bench/step_times.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/bench/interleave.h"

namespace lockstep::bench {
namespace {

constexpr double kMicrosPerMilli = 1000;

enum Column { kStep, kToken, kVariables, kFirstGradient, kLastGradient, kPushed, kColumns };

// Of one step, over the workers.
struct Moments {
  size_t workers = 0;
  int64_t first_release = std::numeric_limits<int64_t>::max();
  int64_t last_release = 0;
  int64_t all_variables = 0;
};

}  // namespace

absl::StatusOr<std::vector<StepLine>> ReadTimeline(const std::string& path) {
  std::ifstream file(path);
  std::vector<StepLine> lines;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (number == 1) continue;  // names of the columns
    std::vector<int64_t> fields;
    for (absl::string_view field : absl::StrSplit(text, ',')) {
      if (!absl::SimpleAtoi(field, &fields.emplace_back())) fields.clear();
    }
    if (fields.size() != kColumns) {
      return absl::DataLossError(
          absl::StrCat(path, ":", number, ": expected ", kColumns, " numbers, got \"", text, "\""));
    }
    lines.push_back({fields[kStep], fields[kToken], fields[kVariables], fields[kFirstGradient],
                     fields[kLastGradient], fields[kPushed]});
  }
  if (lines.empty()) return absl::DataLossError(absl::StrCat(path, ": there are no steps"));
  return lines;
}

std::vector<double> ReleasedSteps(const std::vector<std::vector<StepLine>>& workers,
                                  int64_t release_every, int64_t warm_up) {
  std::map<int64_t, Moments> steps;
  for (const std::vector<StepLine>& worker : workers) {
    for (const StepLine& line : worker) {
      Moments& step = steps[line.step];
      ++step.workers;
      step.first_release = std::min(step.first_release, line.first_gradient);
      step.last_release = std::max(step.last_release, line.first_gradient);
      step.all_variables = std::max(step.all_variables, line.variables);
    }
  }
  std::vector<double> milliseconds;
  for (const auto& [number, step] : steps) {
    const auto next = steps.find(number + 1);
    if (number < warm_up || next == steps.end()) continue;
    const bool whole = step.workers == workers.size() && next->second.workers == workers.size();
    if (!whole || step.first_release / release_every != step.last_release / release_every) continue;
    milliseconds.push_back(static_cast<double>(next->second.all_variables - step.first_release) /
                           kMicrosPerMilli);
  }
  return milliseconds;
}

absl::StatusOr<double> WholeStep(const std::vector<StepLine>& worker, int64_t warm_up) {
  if (static_cast<int64_t>(worker.size()) < warm_up + 2) {
    return absl::DataLossError(
        absl::StrCat("a timeline of ", worker.size(), " steps, ", warm_up, " of them to warm up"));
  }
  const StepLine& first = worker[warm_up];
  const StepLine& last = worker.back();
  return static_cast<double>(last.token - first.token) / kMicrosPerMilli /
         static_cast<double>(last.step - first.step);
}

absl::StatusOr<double> PushAfterBackward(const std::vector<std::vector<StepLine>>& workers,
                                         int64_t warm_up) {
  std::vector<double> milliseconds;
  for (const std::vector<StepLine>& worker : workers) {
    for (const StepLine& line : worker) {
      if (line.step < warm_up) continue;
      milliseconds.push_back(static_cast<double>(line.pushed - line.last_gradient) /
                             kMicrosPerMilli);
    }
  }
  if (milliseconds.empty()) return absl::DataLossError("timelines of no steps");
  return Median(std::move(milliseconds));
}

}  // namespace lockstep::bench
