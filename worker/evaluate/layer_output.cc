#include "worker/evaluate/layer_output.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/model/loss_rules.h"

namespace lockstep::worker {
namespace {

Shape Batched(int64_t count, const Shape& example) {
  std::vector<int64_t> dims = {count};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(dims);
}

class ZeroExamples final : public TestSet {
 public:
  ZeroExamples(const ModelGraph& graph, int64_t count) : count_(count) {
    for (int input = 0; input <= graph.num_state_inputs(); ++input) {
      inputs_.push_back(graph.nodes()[input].output);
    }
  }

  int64_t num_examples() const override { return count_; }
  bool has_labels() const override { return false; }

  absl::StatusOr<Batch> Read(int64_t begin, int64_t end) const override {
    if (begin < 0 || begin > end || end > count_) {
      return absl::InvalidArgumentError(absl::StrCat("examples: expected a range within [0,",
                                                     count_, "), got [", begin, ",", end, ")"));
    }
    Batch batch{Tensor::Zeros(DType::kFloat32, Batched(end - begin, inputs_[0])), Tensor()};
    for (size_t input = 1; input < inputs_.size(); ++input) {
      batch.states.push_back(Tensor::Zeros(DType::kFloat32, Batched(end - begin, inputs_[input])));
    }
    return batch;
  }

 private:
  const int64_t count_;
  std::vector<Shape> inputs_;  // features, then state inputs
};

}  // namespace

absl::StatusOr<ModelGraph> CutAtLayer(const ModelGraph& graph, const std::string& layer) {
  std::vector<std::string> known;
  const int first_layer = 1 + graph.num_state_inputs();
  for (int node = first_layer; node < static_cast<int>(graph.nodes().size()); ++node) {
    if (IsLoss(graph.nodes()[node].layer)) continue;
    if (graph.nodes()[node].name == layer) return graph.ForLayer(node);
    known.push_back(graph.nodes()[node].name);
  }
  const std::string nearest = Nearest(layer, known);
  return absl::InvalidArgumentError(
      absl::StrCat("--layer: expected a layer of the model that is no loss, got \"", layer, "\"",
                   nearest.empty() ? "." : absl::StrCat("; did you mean \"", nearest, "\"?"),
                   " Remedy: name one of ", absl::StrJoin(known, ", ")));
}

bool ReadsExamples(const ModelGraph& graph) {
  for (int input = 0; input <= graph.num_state_inputs(); ++input) {
    if (graph.IsReached(input)) return true;
  }
  return false;
}

std::unique_ptr<TestSet> MakeZeroExamples(const ModelGraph& graph, int64_t count) {
  return std::make_unique<ZeroExamples>(graph, count);
}

}  // namespace lockstep::worker
