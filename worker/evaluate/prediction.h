// Predictions of a model for examples, and their text form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/pipeline.h"
#include "worker/evaluate/trained_model.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

struct Prediction {
  int64_t index = 0;  // of the example; of sequences, of the time step counted through all
  // Of a classifier: the most probable class (the lowest of equals), its probability, and the true
  // class if it is known.
  int64_t label = 0;
  float probability = 0;
  std::optional<int64_t> true_label;
  // Of a regression: the outputs, and the true ones if they are known.
  std::vector<float> outputs;
  std::vector<float> true_outputs;
};

// "17  3  0.9981", then the true class, and "wrong" if it differs. For a regression: the outputs,
// then "true" and the true ones.
std::string ToLine(const Prediction& prediction);

struct PredictOptions {
  int64_t end = 0;    // examples [0, end)
  int64_t batch = 1;  // examples at a time
  uint64_t seed = 0;  // of noise, which is drawn anew for each example
};

// Calls `each` for every example in order, or for every time step of it.
absl::Status PredictRange(Tower* tower, const TrainedModel& model, const TestSet& examples,
                          const PredictOptions& options,
                          const std::function<void(const Prediction&)>& each);

}  // namespace lockstep::worker
