// The data of the example job "clicks" as files.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct ClickFilesOptions {
  int64_t train = 200000;
  int64_t test = 50000;
  uint64_t seed = 1;
};

// How well the test examples can be predicted.
struct ClickFigures {
  double majority = 0;       // accuracy of the more frequent answer, always
  double best_accuracy = 0;  // of who knows the probabilities
  double best_log_loss = 0;  // theirs, per example
};

// Writes train.csv and test.csv, with headers and the label column "click", to a folder that
// exists. Errors as WriteFileAtomically.
absl::StatusOr<ClickFigures> WriteClickFiles(const std::string& folder,
                                             const ClickFilesOptions& options);

}  // namespace lockstep::deploy
