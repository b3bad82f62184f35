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
constexpr float kBeta1 = 0.9f;
constexpr float kBeta2 = 0.999f;
constexpr float kEpsilon = 1e-8f;

void FillAdam(OptimizerDef::Adam* adam) {
  if (adam->beta1() == 0) adam->set_beta1(kBeta1);
  if (adam->beta2() == 0) adam->set_beta2(kBeta2);
  if (adam->epsilon() == 0) adam->set_epsilon(kEpsilon);
}

bool HasTestSet(const DataDef& data) {
  return !data.idx().test_images().empty() || !data.csv().test().empty();
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
  DataDef* data = job->mutable_data();
  if (data->scale() == 0) data->set_scale(kScale);
  if (data->prefetch() == 0) data->set_prefetch(kPrefetch);
  EvaluationDef* evaluation = job->mutable_evaluation();
  if (evaluation->batch() == 0) evaluation->set_batch(kEvaluationBatch);
  if (!HasTestSet(*data)) evaluation->set_not_at_end(true);
  CheckpointDef* checkpoint = job->mutable_checkpoint();
  if (checkpoint->keep_last() == 0) checkpoint->set_keep_last(kKeepLast);
  OptimizerDef* optimizer = job->mutable_optimizer();
  if (optimizer->has_adam()) FillAdam(optimizer->mutable_adam());
}

}  // namespace lockstep
