// The result of a finished job: the JSON file that the chief writes (--summary, docs/status.md),
// and how it reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/status.pb.h"

namespace lockstep::deploy {

struct Summary {
  std::string json;            // as written
  int64_t steps = 0;           // of the job
  int64_t start_step = 0;      // those done before this run
  std::optional<double> loss;  // of the last step; nan when it was not finite; none: no step
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  std::optional<double> test_bits_per_character;  // of a text
  bool averages = false;                          // the last evaluation was of the moving averages
  double train_seconds = 0;
  double examples_per_second = 0;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  uint32_t variables_per_gradient = 1;
  std::string checkpoint;  // folder of the last one; may be empty
  std::vector<EvaluationSummary> evaluations;
  std::vector<JobWarning> warnings;
};

// NOT_FOUND or DATA_LOSS naming the file.
absl::StatusOr<Summary> ReadSummary(const std::string& path);

// A few lines for people.
std::string SummaryText(const Summary& summary);

// One line if the loss of the last step, or that of the last evaluation, is not finite; else empty.
std::string DivergenceWarning(const Summary& summary);

}  // namespace lockstep::deploy
