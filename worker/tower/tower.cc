#include "worker/tower/tower.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/op_factory.h"
#include "worker/tower/pass.h"
#include "worker/tower/schedule.h"

namespace lockstep::worker {
namespace {

class ModelTower : public Tower {
 public:
  ModelTower(const ModelGraph& graph, const TowerOptions& options)
      : graph_(graph),
        options_(options),
        schedule_(MakeSchedule(graph_)),
        device_(options.threads),
        factory_(cpu::MakeOpFactory(&device_)) {}

  absl::Status Prepare() {
    device_.MakeCurrent();
    LOCKSTEP_ASSIGN_OR_RETURN(full_, MakePass(options_.batch));
    predictions_ = Tensor(DType::kFloat32, Shape({options_.batch, graph_.num_outputs()}));
    return absl::OkStatus();
  }

  absl::StatusOr<float> Train(const Batch& batch, const VariableValues& variables,
                              std::span<const MutableTensorView> gradients, uint64_t random_key,
                              const GradientReady& ready) override {
    LOCKSTEP_CHECK(options_.training);
    Pass& pass = Begin(batch.size());
    const TensorView scores =
        pass.Forward(Mode::kTraining, batch.features.view(), variables, random_key);
    const float loss =
        static_cast<float>(pass.loss().Train(scores, batch.labels.view(), pass.scores_gradient()));
    const int loss_variable = graph_.loss_variable();
    gradients[loss_variable].as<float>()[0] = loss;
    ready({&loss_variable, 1});
    pass.Backward(gradients, ready);
    return loss;
  }

  absl::StatusOr<Evaluation> Evaluate(const Batch& batch,
                                      const VariableValues& variables) override {
    if (batch.size() == 0) return Evaluation();
    Pass& pass = Begin(batch.size());
    const TensorView scores = pass.Forward(Mode::kInference, batch.features.view(), variables, 0);
    const Loss::Sums sums = pass.loss().Evaluate(scores, batch.labels.view());
    return Evaluation{batch.size(), sums.correct, sums.loss};
  }

  absl::StatusOr<TensorView> Predict(const Tensor& features,
                                     const VariableValues& variables) override {
    const int64_t size = features.shape().dim(0);
    MutableTensorView predictions = predictions_.view();
    predictions.shape = Shape({size, graph_.num_outputs()});
    if (size == 0) return TensorView(predictions);
    Pass& pass = Begin(size);
    const TensorView scores = pass.Forward(Mode::kInference, features.view(), variables, 0);
    pass.loss().Predict(scores, predictions);
    return TensorView(predictions);
  }

 private:
  absl::StatusOr<std::unique_ptr<Pass>> MakePass(int64_t batch) {
    return Pass::Create(graph_, schedule_, device_, *factory_, {batch, options_.training});
  }

  // The pass for a batch of this size. The last size below the largest is kept: data that ends in a
  // smaller batch asks for it again and again.
  Pass& Begin(int64_t size) {
    LOCKSTEP_CHECK(size >= 1 && size <= options_.batch);
    device_.MakeCurrent();
    if (size == options_.batch) return *full_;
    if (smaller_ == nullptr || smaller_->batch() != size) {
      smaller_.reset();
      absl::StatusOr<std::unique_ptr<Pass>> made = MakePass(size);
      // A larger one could be made, of the same ops.
      LOCKSTEP_CHECK(made.ok());
      smaller_ = *std::move(made);
    }
    return *smaller_;
  }

  const ModelGraph graph_;
  const TowerOptions options_;
  const Schedule schedule_;
  const CpuDevice device_;
  const std::unique_ptr<OpFactory> factory_;
  std::unique_ptr<Pass> full_;
  std::unique_ptr<Pass> smaller_;
  Tensor predictions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tower>> Tower::Create(const ModelGraph& graph,
                                                     const TowerOptions& options) {
  if (options.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch of a tower: expected at least 1, got ", options.batch));
  }
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads of a tower: expected at least 1, got ", options.threads));
  }
  auto tower = std::make_unique<ModelTower>(graph, options);
  LOCKSTEP_RETURN_IF_ERROR(tower->Prepare());
  return tower;
}

}  // namespace lockstep::worker
