// The result of a finished job: the JSON file that the chief writes (--summary), and how it reads.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct Summary {
  std::string json;  // as written
  double test_accuracy = 0;
  bool has_test_accuracy = false;  // the job was evaluated
  int64_t steps = 0;               // of the job
  int64_t start_step = 0;          // those done before this run
  double train_seconds = 0;
  double examples_per_second = 0;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  std::string checkpoint;  // folder of the last one; may be empty
};

// NOT_FOUND or DATA_LOSS naming the file.
absl::StatusOr<Summary> ReadSummary(const std::string& path);

// A few lines for people.
std::string SummaryText(const Summary& summary);

}  // namespace lockstep::deploy
