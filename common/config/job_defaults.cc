#include "common/config/job_defaults.h"

#include <filesystem>

#include "common/config/job_fields.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

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
  FillJobFields(job);
  if (!HasTestSet(job->data())) job->mutable_evaluation()->set_not_at_end(true);
}

}  // namespace lockstep
