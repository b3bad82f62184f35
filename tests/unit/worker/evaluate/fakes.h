// A tower and a test set that can be checked by head.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/config/text_proto.h"
#include "common/model/graph.h"
#include "worker/data/pipeline.h"
#include "worker/tower/tower.h"

namespace lockstep::worker::test {

inline ModelGraph MakeGraph(const std::string& text) {
  ModelDef def;
  if (!ParseTextProto("test", text, &def).ok()) std::abort();
  auto graph = ModelGraph::Build(def);
  if (!graph.ok()) std::abort();
  return *std::move(graph);
}

// Example i has the features i and 10 i; its label is i % 3, or as a regression the target -i.
class CountingTestSet final : public TestSet {
 public:
  CountingTestSet(int64_t size, bool labels, bool classifier = true)
      : size_(size), labels_(labels), classifier_(classifier) {}

  int64_t num_examples() const override { return size_; }
  bool has_labels() const override { return labels_; }
  absl::StatusOr<Batch> Read(int64_t begin, int64_t end) const override {
    if (begin < 0 || end > size_ || begin > end) return absl::InvalidArgumentError("range");
    const int64_t n = end - begin;
    Batch batch{Tensor(DType::kFloat32, {n, 2}), Tensor()};
    if (labels_ && classifier_) batch.labels = Tensor(DType::kInt32, {n});
    if (labels_ && !classifier_) batch.labels = Tensor(DType::kFloat32, {n, 1});
    for (int64_t row = 0; row < n; ++row) {
      const int64_t i = begin + row;
      batch.features.as<float>()[2 * row] = i;
      batch.features.as<float>()[2 * row + 1] = 10 * i;
      if (labels_ && classifier_) batch.labels.as<int32_t>()[row] = i % 3;
      if (labels_ && !classifier_) batch.labels.as<float>()[row] = -i;
    }
    return batch;
  }

 private:
  const int64_t size_;
  const bool labels_;
  const bool classifier_;
};

// Says class (first feature + shift) % 3 with probability 0.5; as a regression twice the first
// feature. Notes the sizes of its batches.
class CountingTower final : public Tower {
 public:
  explicit CountingTower(int64_t shift = 0, bool classifier = true)
      : shift_(shift), classifier_(classifier) {}

  absl::StatusOr<std::span<const TowerGradient>> Train(const Batch&, const VariableValues&,
                                                       std::span<const MutableTensorView>,
                                                       uint64_t) override {
    std::abort();
  }
  absl::Status Finish() override { return absl::OkStatus(); }
  float loss() const override { return 0; }

  absl::StatusOr<Evaluation> Evaluate(const Batch& batch, const VariableValues&) override {
    batches.push_back(batch.size());
    Evaluation result;
    for (int64_t row = 0; row < batch.size(); ++row) {
      ++result.examples;
      const int64_t i = static_cast<int64_t>(batch.features.as<float>()[2 * row]);
      result.correct += batch.labels.as<int32_t>()[row] == (i + shift_) % 3;
      result.loss_sum += i;
    }
    return result;
  }

  absl::StatusOr<TensorView> Predict(const Batch& batch, const VariableValues&, uint64_t) override {
    const int64_t n = batch.size();
    batches.push_back(n);
    scores_ = Tensor::Zeros(DType::kFloat32, {n, classifier_ ? 3 : 1});
    for (int64_t row = 0; row < n; ++row) {
      const int64_t i = static_cast<int64_t>(batch.features.as<float>()[2 * row]);
      if (!classifier_) {
        scores_.as<float>()[row] = 2 * i;
        continue;
      }
      const auto scores = scores_.as<float>().subspan(3 * row, 3);
      std::fill(scores.begin(), scores.end(), 0.25f);
      scores[(i + shift_) % 3] = 0.5f;
    }
    return TensorView(scores_.view());
  }

  std::vector<int64_t> batches;

 private:
  const int64_t shift_;
  const bool classifier_;
  Tensor scores_;
};

}  // namespace lockstep::worker::test
