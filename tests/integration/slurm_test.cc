// A job under a real Slurm goes on after what Slurm and its nodes do to it.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/integration/slurm_cluster.h"
#include "tests/integration/slurm_job.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

const JobText kJob = {.max_steps = 600, .checkpoint = "folder: 'checkpoints'"};

double SecondsSince(absl::Time time) { return absl::ToDoubleSeconds(absl::Now() - time); }

// One case alone: the network is that of the process.
TEST_CASE("a job of Slurm survives the loss of a worker, a requeue and the loss of a node") {
  SlurmCluster slurm(3);
  SlurmJob job(&slurm, kJob);
  job.Submit();
  int64_t step = job.AwaitStepBeyond(30);

  job.KillWorker(1);
  absl::Time begin = absl::Now();
  job.AwaitLog("worker-1", "joined job", 2);
  step = job.AwaitStepBeyond(step + 10);
  const double killed = SecondsSince(begin);
  CHECK(job.Field("Restarts") == "0");
  CHECK(job.Count("chief", "training begins at step") == 1);

  begin = absl::Now();
  slurm.Run({"/usr/bin/scontrol", "requeue", job.id()});
  job.AwaitState("PENDING");
  CHECK_FALSE(job.HasProcesses());
  job.StartAgain();
  const double requeued = SecondsSince(begin);
  // Nothing else was saved: there is no every_steps.
  CHECK(job.Count("chief", "saving the last committed step") == 1);
  CHECK(job.Count("chief", "chief: checkpoint ") == 1);
  const int64_t saved = job.SavedStep();
  CHECK(saved >= step);
  job.AwaitStepBeyond(saved);
  const double trained = SecondsSince(begin);
  CHECK(job.CountRestored(saved) == 1);
  // A node that Slurm could not free of the job's processes would be drained.
  CHECK(slurm.Run({"/usr/bin/sinfo", "--noheader", "--states=drain", "--format=%N"}) == "");

  // That of the script and of the chief.
  const std::string node = job.Field("BatchHost");
  slurm.KillNode(node);
  begin = absl::Now();
  job.StartAgain();
  const double noticed = SecondsSince(begin);
  job.AwaitStepBeyond(saved);
  const double moved = SecondsSince(begin);
  CHECK(job.CountRestored(saved) == 2);
  CHECK(job.Field("BatchHost") != node);

  job.AwaitState("COMPLETED");
  CHECK(job.Field("ExitCode") == "0:0");
  CHECK(job.Field("Restarts") == "2");
  WARN(absl::StrFormat(
      "10 steps after the kill of a worker: %.1f s; requeue: in the queue after %.1f s, a step "
      "after %.1f s; loss of a node: in the queue after %.1f s, a step after %.1f s",
      killed, requeued, trained, noticed, moved));

  Cluster calm(2, 2);
  calm.StartAll(kJob);
  Finish(calm);
  INFO(job.Logs());
  CHECK(TensorsOf(calm.folder().Path("checkpoints/ckpt-600")) == TensorsOf(job.Checkpoint(600)));
}

}  // namespace
}  // namespace lockstep::test
