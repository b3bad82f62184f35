#include "worker/evaluate/prediction.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// Row `row` of a [n, ...] tensor.
std::span<const float> RowOf(TensorView tensor, int64_t row) {
  const int64_t width = tensor.num_elements() / tensor.shape.dim(0);
  return tensor.as<float>().subspan(row * width, width);
}

Prediction Classified(std::span<const float> probabilities) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  Prediction prediction;
  prediction.label = best - probabilities.begin();
  prediction.probability = *best;
  return prediction;
}

}  // namespace

std::string ToLine(const Prediction& prediction) {
  std::string line = absl::StrCat(prediction.index);
  if (prediction.outputs.empty()) {
    absl::StrAppendFormat(&line, "  %d  %.4f", prediction.label, prediction.probability);
    if (prediction.true_label.has_value()) {
      absl::StrAppend(&line, "  ", *prediction.true_label,
                      *prediction.true_label == prediction.label ? "" : "  wrong");
    }
    return line;
  }
  for (const float output : prediction.outputs) absl::StrAppendFormat(&line, "  %.6g", output);
  if (!prediction.true_outputs.empty()) line += "  true";
  for (const float output : prediction.true_outputs) absl::StrAppendFormat(&line, "  %.6g", output);
  return line;
}

absl::Status PredictRange(Tower* tower, const TrainedModel& model, const TestSet& examples,
                          const PredictOptions& options,
                          const std::function<void(const Prediction&)>& each) {
  const bool has_labels = examples.has_labels() && model.graph.uses_labels();
  for (int64_t begin = 0; begin < options.end; begin += options.batch) {
    const int64_t end = std::min(options.end, begin + options.batch);
    LOCKSTEP_ASSIGN_OR_RETURN(const Batch read, examples.Read(begin, end));
    const uint64_t random_key = MixSeeds(options.seed, static_cast<uint64_t>(begin));
    LOCKSTEP_ASSIGN_OR_RETURN(const TensorView scores,
                              tower->Predict(read, {model.views}, random_key));
    const int64_t labels = model.graph.labels_per_example();
    for (int64_t row = 0; row < read.size() * labels; ++row) {
      const std::span<const float> outputs = RowOf(scores, row);
      Prediction prediction;
      if (model.graph.is_classifier()) {
        prediction = Classified(outputs);
        if (has_labels) prediction.true_label = read.labels.as<int32_t>()[row];
      } else {
        prediction.outputs.assign(outputs.begin(), outputs.end());
        if (has_labels) {
          const std::span<const float> truth = RowOf(read.labels.view(), row);
          prediction.true_outputs.assign(truth.begin(), truth.end());
        }
      }
      prediction.index = begin * labels + row;
      each(prediction);
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
