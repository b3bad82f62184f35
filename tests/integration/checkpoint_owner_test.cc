// Real jobs and their checkpoint folders: two jobs in one, chiefs one after another, a chief that
// has been replaced.
#include <signal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kForeverSteps = 1'000'000;

JobText Job(const std::string& folder) {
  return {.max_steps = kForeverSteps,
          .checkpoint = absl::StrCat("folder: '", folder, "' every_steps: 50")};
}

// A job that has saved.
struct Running {
  explicit Running(const std::string& in) : folder(in) {
    cluster.StartAll(Job(folder));
    REQUIRE(cluster.chief().WaitForOutput("/ckpt-50\n", kWhole));
  }
  FolderOwner owner() const { return **ReadOwner(folder); }

  const std::string folder;
  Cluster cluster{1, 1};
};

TEST_CASE("a second job in the checkpoint folder of one that runs is refused, and harms nothing") {
  const TemporaryFolder base;
  Running first(base.Path("checkpoints"));
  const FolderOwner owner = first.owner();
  for (const char* flag : {"--resume", "--fresh", "--restore"}) {
    Cluster second(1, 1);
    second.StartAll(Job(first.folder), {flag});
    const auto code = second.chief().Wait(kWhole);
    INFO(second.Logs());
    CHECK(code == 78);
    CHECK_THAT(second.chief().Output(),
               Contains(first.folder + "/LOCK: locked by process " + absl::StrCat(owner.pid)) &&
                   Contains(" on host " + owner.host) && Contains("Remedy: "));
    CHECK(second.ps(0).running());
  }
  CHECK(first.owner() == owner);
  CHECK(first.cluster.chief().running());
  CHECK(ResolveCheckpoint(first.folder).ok());
  // When the first one is gone, the next one takes the folder.
  for (Process* process : {&first.cluster.chief(), &first.cluster.ps(0)}) {
    process->Signal(SIGKILL);
    REQUIRE(process->Wait(kWhole) == 137);
  }
  Cluster second(1, 1);
  second.StartAll(Job(first.folder), {"--resume"});
  REQUIRE(second.chief().WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(second.chief().Output(), Contains("restored from " + first.folder));
  CHECK(first.owner().job != owner.job);
  CHECK(first.owner().epoch == owner.epoch + 1);
  CHECK(first.owner().origin.epoch == owner.epoch);
}

TEST_CASE("a chief that is killed and started again has its folder again") {
  const TemporaryFolder base;
  Running job(base.Path("checkpoints"));
  const FolderOwner before = job.owner();
  job.cluster.chief().Signal(SIGKILL);
  REQUIRE(job.cluster.chief().Wait(kWhole) == 137);
  job.cluster.StartChief({"--resume"});
  REQUIRE(job.cluster.chief().WaitForOutput("checkpoint " + job.folder, kWhole));
  CHECK_THAT(job.cluster.chief().Output(), Contains("taking over at step"));
  CHECK(job.owner().job == before.job);
  CHECK(job.owner().epoch == before.epoch);
  CHECK(job.owner().term > before.term);
  CHECK(job.owner().pid != before.pid);
}

TEST_CASE("a chief whose folder another one of the job has saves nothing more and tells nobody") {
  const TemporaryFolder base;
  Running job(base.Path("checkpoints"));
  FolderOwner next = job.owner();
  ++next.term;
  ++next.chief;
  // The chief may remove the temporary file, at the end of a save.
  while (!WriteOwner(job.folder, next, nullptr).ok()) REQUIRE(job.cluster.chief().running());
  const auto code = job.cluster.chief().Wait(kWhole);
  INFO(job.cluster.Logs());
  CHECK(code == 80);
  CHECK_THAT(job.cluster.chief().Output(), Contains("another one has its place"));
  CHECK(ResolveCheckpoint(job.folder).ok());
  CHECK(job.owner() == next);
  CHECK(job.cluster.ps(0).running());
  CHECK(job.cluster.worker(0).running());
}

}  // namespace
}  // namespace lockstep::test
