// A disk that hangs while a chief takes command: the lease is renewed meanwhile.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "chief/checkpoint/folder_claim.h"
#include "common/base/exit_code.h"
#include "common/checkpoint/owner.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using test::SetDiskFaults;

constexpr char kEntering[] = ",open,OWNER.json,1,hang";
constexpr char kTaking[] = ",open,OWNER.json,2,hang";

JobOptions Options() { return {.incarnation = Incarnation(5)}; }

JobPlan PlanIn(const test::TemporaryFolder& folder) {
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  return plan;
}

// Of another job. Only one without a living chief can be followed by it.
const FolderOwner kOther{.job = 78, .epoch = 9, .term = 1, .chief = 6, .host = "b", .pid = 1};

TEST_CASE("a chief renews its lease while the disk hangs in its claim or in a move") {
  const test::TemporaryFolder folder;
  JobPlan plan = PlanIn(folder);
  const bool moves = GENERATE(false, true);
  if (moves) {
    plan.mode = StartMode::kFresh;
    plan.earlier = folder.path() + "/ckpt-3";
    folder.Write("ckpt-3/manifest.json", "");
  }
  SetDiskFaults(folder.path() + (moves ? ",mkdir,earlier-1,1,hang" : kTaking));
  JobFixture f(plan, Options(), /*disk_answers=*/false);
  while (test::FailedDiskOperations().empty()) f.Settle();
  f.ps_answers = false;
  f.Pass(absl::Seconds(10));  // two leases
  CHECK(f.ps.renewals.size() == 8);
  CHECK(f.ps.create.size() == 0);
  CHECK(f.Status().waiting_for() == "the disk of the checkpoint folder " + folder.path());
  CHECK_FALSE(f.Register(0, 10)->has_value());
  SetDiskFaults("");
  f.executor.AwaitWork();
  f.ps_answers = true;
  f.Settle();
  CHECK((*ReadOwner(folder.path()))->chief == 5);
  CHECK(f.Status().waiting_for() == "");
}

TEST_CASE("a chief whose lease was lost while the disk hung claims nothing when that goes on") {
  const test::TemporaryFolder folder;
  SetDiskFaults(folder.path() + kTaking);
  JobFixture f(PlanIn(folder), Options(), /*disk_answers=*/false);
  while (test::FailedDiskOperations().empty()) f.Settle();
  f.ps_answers = false;
  f.Pass(absl::Seconds(2));
  f.ps.renewals.Answer(absl::AbortedError("term 2 belongs to another chief"));
  f.Pass(absl::Seconds(3));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
  SetDiskFaults(test::NoSyncsBelow(folder.path()));
  f.executor.AwaitWork();
  CHECK_FALSE(ReadOwner(folder.path())->has_value());
  for (const test::DiskChange& change : test::DiskChanges()) {
    FAIL_CHECK(change.operation + " " + change.path);
  }
  CHECK(f.ps.create.size() == 0);
  SetDiskFaults("");
}

TEST_CASE("a chief that ends before it commands does not keep the folder it was about to enter") {
  const test::TemporaryFolder folder;
  SetDiskFaults(folder.path() + kEntering);
  JobFixture f(PlanIn(folder), Options(), /*disk_answers=*/false);
  f.Pass(absl::Seconds(1));
  f.job->Stop(absl::CancelledError("told to stop"));
  f.Settle();
  CHECK(f.ended.has_value());
  SetDiskFaults("");
  f.executor.AwaitWork();
  CHECK(f.ps.set_view.size() == 0);
  CHECK(FolderClaim(folder.path()).Enter(kOther).ok());
}

}  // namespace
}  // namespace lockstep::chief
