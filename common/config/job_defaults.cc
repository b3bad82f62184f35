#include "common/config/job_defaults.h"

#include <filesystem>

#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr int64_t kTowers = 1;
constexpr float kScale = 1;
constexpr int64_t kPrefetch = 2;
constexpr int64_t kEvaluationBatch = 256;
constexpr int64_t kKeepLast = 3;
constexpr int64_t kMaxPartBytes = int64_t{64} << 20;
constexpr float kBeta1 = 0.9f;
constexpr float kBeta2 = 0.999f;
constexpr float kAdamEpsilon = 1e-8f;
constexpr float kInitialAccumulator = 0.1f;
constexpr float kRho = 0.95f;
constexpr float kAdadeltaEpsilon = 1e-8f;
constexpr float kDecay = 0.9f;
constexpr float kRmsPropEpsilon = 1e-10f;
constexpr float kLearningRatePower = -0.5f;
constexpr float kEndLearningRate = 0.0001f;
constexpr float kPower = 1;

bool HasTestSet(const DataDef& data) {
  return !data.idx().test_images().empty() || !data.csv().test().empty();
}

// TensorFlow's.
void FillOptimizer(OptimizerDef* optimizer) {
  if (optimizer->has_adam()) {
    OptimizerDef::Adam* adam = optimizer->mutable_adam();
    if (!adam->has_beta1()) adam->set_beta1(kBeta1);
    if (!adam->has_beta2()) adam->set_beta2(kBeta2);
    if (!adam->has_epsilon()) adam->set_epsilon(kAdamEpsilon);
  } else if (optimizer->has_adagrad()) {
    OptimizerDef::Adagrad* adagrad = optimizer->mutable_adagrad();
    if (!adagrad->has_initial_accumulator_value()) {
      adagrad->set_initial_accumulator_value(kInitialAccumulator);
    }
  } else if (optimizer->has_adadelta()) {
    OptimizerDef::Adadelta* adadelta = optimizer->mutable_adadelta();
    if (!adadelta->has_rho()) adadelta->set_rho(kRho);
    if (!adadelta->has_epsilon()) adadelta->set_epsilon(kAdadeltaEpsilon);
  } else if (optimizer->has_rmsprop()) {
    OptimizerDef::RmsProp* rmsprop = optimizer->mutable_rmsprop();
    if (!rmsprop->has_decay()) rmsprop->set_decay(kDecay);
    if (!rmsprop->has_epsilon()) rmsprop->set_epsilon(kRmsPropEpsilon);
  } else if (optimizer->has_ftrl()) {
    OptimizerDef::Ftrl* ftrl = optimizer->mutable_ftrl();
    if (!ftrl->has_learning_rate_power()) ftrl->set_learning_rate_power(kLearningRatePower);
    if (!ftrl->has_initial_accumulator_value()) {
      ftrl->set_initial_accumulator_value(kInitialAccumulator);
    }
  }
  if (!optimizer->learning_rate().has_polynomial()) return;
  LearningRate::Polynomial* polynomial = optimizer->mutable_learning_rate()->mutable_polynomial();
  if (!polynomial->has_end_learning_rate()) polynomial->set_end_learning_rate(kEndLearningRate);
  if (!polynomial->has_power()) polynomial->set_power(kPower);
}

}  // namespace

void MakePathsAbsolute(absl::string_view folder, JobDef* job) {
  const auto complete = [&](std::string* path) {
    if (path->empty()) return;
    *path = std::filesystem::path(JoinPath(folder, *path)).lexically_normal().string();
  };
  complete(job->mutable_model());
  if (job->data().has_idx()) {
    IdxFiles* idx = job->mutable_data()->mutable_idx();
    complete(idx->mutable_train_images());
    complete(idx->mutable_train_labels());
    complete(idx->mutable_test_images());
    complete(idx->mutable_test_labels());
  }
  if (job->data().has_csv()) {
    complete(job->mutable_data()->mutable_csv()->mutable_train());
    complete(job->mutable_data()->mutable_csv()->mutable_test());
  }
  if (job->has_checkpoint()) complete(job->mutable_checkpoint()->mutable_folder());
}

void FillJobDefaults(const std::string& path, JobDef* job) {
  if (job->name().empty()) {
    job->set_name(std::filesystem::path(NameOf(path)).stem().string());
  }
  if (job->towers() == 0) job->set_towers(kTowers);
  if (job->max_part_bytes() == 0) job->set_max_part_bytes(kMaxPartBytes);
  DataDef* data = job->mutable_data();
  if (data->scale() == 0) data->set_scale(kScale);
  if (data->prefetch() == 0) data->set_prefetch(kPrefetch);
  EvaluationDef* evaluation = job->mutable_evaluation();
  if (evaluation->batch() == 0) evaluation->set_batch(kEvaluationBatch);
  if (!HasTestSet(*data)) evaluation->set_not_at_end(true);
  CheckpointDef* checkpoint = job->mutable_checkpoint();
  if (checkpoint->keep_last() == 0) checkpoint->set_keep_last(kKeepLast);
  FillOptimizer(job->mutable_optimizer());
}

}  // namespace lockstep
