// A model in the folder of a running job, whose saves delete checkpoints.
#include "worker/evaluate/newest_model.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::worker {
namespace {

using test::SetDiskFaults;
using test::TemporaryFolder;

constexpr char kModel[] =
    "name: 'tiny' input_shape: 2 layers { name: 'd' dense { units: 3 } } "
    "layers { name: 'loss' softmax_cross_entropy {} }";

void Save(const TemporaryFolder& root, int64_t step) {
  const Tensor kernel = Tensor::Zeros(DType::kFloat32, {2, 3});
  const Tensor bias = Tensor::Zeros(DType::kFloat32, {3});
  Manifest manifest;
  manifest.step = step;
  manifest.model = kModel;
  manifest.job = "name: 'job' data { idx { test_images: '/x' } }";
  const auto shard = WriteShard(CheckpointFolder(root.path(), step), 0, 1,
                                {{"d/kernel", kernel.view()}, {"d/bias", bias.view()}});
  REQUIRE(shard.ok());
  manifest.shards = {*shard};
  REQUIRE(CommitCheckpoint(root.path(), manifest, 0).ok());
}

// The manifest has gone when it is opened for the nth time. Each look opens it to list it, to
// verify it, to load it and, where that fails, to see whether it is there.
std::string GoneAt(const TemporaryFolder& root, const std::vector<int>& opens) {
  std::string faults;
  for (const int nth : opens) {
    absl::StrAppend(&faults, faults.empty() ? "" : ";", root.path(), ",open,ckpt-30/manifest.json,",
                    nth, ",ENOENT");
  }
  return faults;
}

TEST_CASE("a checkpoint that is deleted before its model is loaded is looked for again") {
  const TemporaryFolder root;
  Save(root, 30);
  std::vector<std::string> warnings;
  SetDiskFaults(GoneAt(root, {3, 4}));
  const absl::StatusOr<NewestModel> newest = LoadNewest(root.path(), &warnings);
  CHECK(test::FailedDiskOperations().size() == 2);
  SetDiskFaults("");
  INFO(newest.status());
  REQUIRE(newest.ok());
  CHECK(newest->folder == root.Path("ckpt-30"));
  CHECK(newest->model.step == 30);
  CHECK(warnings.empty());
}

TEST_CASE("a checkpoint that is deleted each time is gone, and not damaged") {
  const TemporaryFolder root;
  Save(root, 30);
  std::vector<std::string> warnings;
  SetDiskFaults(GoneAt(root, {3, 4, 7, 8, 11, 12}));
  const absl::Status status = LoadNewest(root.path(), &warnings).status();
  SetDiskFaults("");
  CHECK(ExitCodeFor(status) == ExitCode::kInputNotFound);
}

TEST_CASE("a checkpoint that is named itself is looked at once") {
  const TemporaryFolder root;
  Save(root, 30);
  std::vector<std::string> warnings;
  // It is found and verified first.
  SetDiskFaults(GoneAt(root, {3, 4}));
  CHECK_FALSE(LoadNewest(root.Path("ckpt-30"), &warnings).ok());
  SetDiskFaults("");
}

}  // namespace
}  // namespace lockstep::worker
