// A checkpoint that another save deletes while it is looked for: the job never begins anew for it.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "chief/plan/messages.h"
#include "chief/plan/plan.h"
#include "common/base/exit_code.h"
#include "common/checkpoint/checkpoint.h"
#include "common/fs/fs_error.h"
#include "common/tensor/tensor.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using test::SetDiskFaults;

JobPlan PlanIn(const test::TemporaryFolder& root) {
  JobPlan plan = TwoWorkerPlan(10);
  for (VariableSpec& variable : *plan.placement.mutable_variables()) variable.set_dtype(FLOAT32);
  plan.job.mutable_checkpoint()->set_folder(root.path());
  return plan;
}

void Save(const test::TemporaryFolder& root, int64_t step) {
  Manifest manifest = ToManifest(PlanIn(root), Epoch(1), {});
  manifest.step = step;
  const Tensor value(DType::kFloat32, {});
  const absl::StatusOr<ShardFile> shard =
      WriteShard(CheckpointFolder(root.path(), step), 0, 1,
                 {{"fc/kernel", value.view()}, {"train/loss", value.view()}});
  REQUIRE(shard.ok());
  manifest.shards = {*shard};
  REQUIRE(CommitCheckpoint(root.path(), manifest, 0).ok());
}

// Its manifest is gone when it is opened for the nth time.
std::string GoneAt(const test::TemporaryFolder& root, int64_t step, int nth) {
  return absl::StrCat(root.path(), ",open,ckpt-", step, "/manifest.json,", nth, ",ENOENT");
}

TEST_CASE("a folder whose only checkpoint is gone when it is opened is looked at again") {
  const test::TemporaryFolder root;
  Save(root, 4);
  const bool has_unfinished = GENERATE(false, true);
  if (has_unfinished) root.Write("ckpt-6/shard-0-of-1.safetensors", "half");
  for (const int nth : {1, 2}) {
    CAPTURE(nth, has_unfinished);
    SetDiskFaults(GoneAt(root, 4, nth));
    const absl::StatusOr<std::string> found = ResolveCheckpoint(root.path());
    CHECK(test::FailedDiskOperations().size() == 1);
    SetDiskFaults("");
    CHECK(found.value_or(found.status().ToString()) == root.Path("ckpt-4"));
  }
}

TEST_CASE("a checkpoint whose shards are gone with its manifest is no damaged one") {
  const test::TemporaryFolder root;
  Save(root, 4);
  // Each look reads the manifest twice, then a shard, then asks for the manifest.
  const std::string shard = absl::StrCat(root.path(), ",open,shard-0-of-1.safetensors,1,ENOENT");
  SetDiskFaults(absl::StrCat(shard, ";", GoneAt(root, 4, 3)));
  const absl::StatusOr<std::string> found = ResolveCheckpoint(root.path());
  CHECK(test::FailedDiskOperations().size() == 2);
  SetDiskFaults("");
  CHECK(found.value_or(found.status().ToString()) == root.Path("ckpt-4"));
}

TEST_CASE(
    "the newest checkpoint is looked for again where it is gone, before an older one is taken") {
  const test::TemporaryFolder root;
  Save(root, 4);
  Save(root, 6);
  SetDiskFaults(GoneAt(root, 6, 2));
  const absl::StatusOr<std::string> found = ResolveCheckpoint(root.path());
  SetDiskFaults("");
  CHECK(found.value_or("") == root.Path("ckpt-6"));
}

TEST_CASE("a checkpoint that is gone each time it is opened is a failure that may pass") {
  const test::TemporaryFolder root;
  Save(root, 4);
  std::string faults;
  for (int nth = 2; nth <= 20; nth += 2) {
    absl::StrAppend(&faults, faults.empty() ? "" : ";", GoneAt(root, 4, nth));
  }
  SetDiskFaults(faults);
  const absl::Status status = ResolveCheckpoint(root.path()).status();
  const size_t looks = test::FailedDiskOperations().size();
  SetDiskFaults("");
  CHECK(looks > 1);
  CHECK(looks < 10);
  CHECK(IsStorageFailure(status));
  CHECK(ExitCodeFor(status) == ExitCode::kInputNotFound);
  CHECK_THAT(std::string(status.message()), Catch::Contains(root.Path("ckpt-4")));
}

TEST_CASE("a job that goes back never begins anew because its checkpoint is gone as it is read") {
  const test::TemporaryFolder root;
  Save(root, 4);
  int failures = 0;
  for (int nth = 1;; ++nth) {
    CAPTURE(nth);
    SetDiskFaults(GoneAt(root, 4, nth));
    const absl::StatusOr<JobPlan> plan = GoBack(PlanIn(root), "ps 0 is gone");
    const bool has_failed = !test::FailedDiskOperations().empty();
    SetDiskFaults("");
    INFO(plan.status());
    if (plan.ok()) {
      CHECK(plan->start == GlobalStep(4));
      CHECK(plan->restore_from == root.Path("ckpt-4"));
      CHECK(plan->epoch == Epoch(2));
    } else {
      ++failures;
      CHECK(IsStorageFailure(plan.status()));
    }
    if (has_failed) continue;
    CHECK(plan.ok());
    CHECK(nth > 4);  // the epoch, the listing, the checksums and the plan read it
    break;
  }
  CHECK(failures == 1);  // nothing was read after it
}

TEST_CASE("a folder of saves that were never finished holds no checkpoint, and the job begins") {
  const test::TemporaryFolder root;
  root.Write("ckpt-2/shard-0-of-1.safetensors", "half");
  CHECK(absl::IsNotFound(ResolveCheckpoint(root.path()).status()));
  const absl::StatusOr<JobPlan> plan = GoBack(PlanIn(root), "ps 0 is gone");
  REQUIRE(plan.ok());
  CHECK(plan->start == GlobalStep(0));
  CHECK(plan->restore_from.empty());
}

}  // namespace
}  // namespace lockstep::chief
