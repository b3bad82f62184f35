#include "common/config/job_defaults.h"

#include <filesystem>

#include "common/config/job_fields.h"
#include "common/config/job_rules.h"
#include "common/fs/absolute_path.h"
#include "common/fs/path.h"

namespace lockstep {

bool HasTestSet(const DataDef& data) {
  if (data.has_text()) return !data.text().has_held_out() || data.text().held_out() > 0;
  return !data.idx().test_images().empty() || !data.csv().test().empty();
}

namespace {

constexpr int64_t kDefaultDeviceBatch = 256;
constexpr int64_t kDefaultLoad = 8192;
constexpr int64_t kDefaultPasses = 8;

// Not rows of job_fields.cc: those would give every job the block.
void FillLocalSync(JobDef* job) {
  if (job->has_local_sync()) {
    LocalSyncDef* local_sync = job->mutable_local_sync();
    if (local_sync->max_per_device_batch_size() == 0) {
      local_sync->set_max_per_device_batch_size(kDefaultDeviceBatch);
    }
    if (local_sync->load() == 0) local_sync->set_load(kDefaultLoad);
    if (local_sync->passes() == 0) local_sync->set_passes(kDefaultPasses);
  }
  if (!job->strategy().has_replicated() &&
      job->batch_norm_updates() == JobDef::BATCH_NORM_UPDATES_UNSPECIFIED) {
    job->set_batch_norm_updates(job->has_local_sync() ? JobDef::EVERY_TOWER : JobDef::MEAN);
  }
}

}  // namespace

void MakePathsAbsolute(absl::string_view folder, JobDef* job) {
  const auto complete = [&](std::string* path) {
    if (path->empty()) return;
    *path = AbsolutePath(JoinPath(folder, *path));
  };
  complete(job->mutable_model());
  if (job->data().has_idx()) {
    IdxFiles* idx = job->mutable_data()->mutable_idx();
    for (std::string& path : *idx->mutable_train_images()) complete(&path);
    for (std::string& path : *idx->mutable_train_labels()) complete(&path);
    complete(idx->mutable_test_images());
    complete(idx->mutable_test_labels());
  }
  if (job->data().has_csv()) {
    CsvFile* csv = job->mutable_data()->mutable_csv();
    for (std::string& path : *csv->mutable_train()) complete(&path);
    complete(csv->mutable_test());
  }
  for (StateInputData& state : *job->mutable_data()->mutable_state_inputs()) {
    for (std::string& path : *state.mutable_train()) complete(&path);
    complete(state.mutable_test());
  }
  if (job->data().has_text()) complete(job->mutable_data()->mutable_text()->mutable_path());
  if (job->has_checkpoint()) complete(job->mutable_checkpoint()->mutable_folder());
}

void FillJobDefaults(const std::string& path, JobDef* job) {
  if (job->name().empty()) {
    job->set_name(std::filesystem::path(NameOf(path)).stem().string());
  }
  FillJobFields(job);
  FillLocalSync(job);
  FillLosses(job);
  if (!HasTestSet(job->data())) job->mutable_evaluation()->set_not_at_end(true);
}

}  // namespace lockstep
