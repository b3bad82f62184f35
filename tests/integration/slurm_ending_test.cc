// How a job ends under a real Slurm, but for the end of its training.
#include <catch2/catch.hpp>

#include "tests/integration/slurm_cluster.h"
#include "tests/integration/slurm_job.h"

namespace lockstep::test {
namespace {

// One case alone: the network is that of the process.
TEST_CASE("a job of Slurm fails with its own exit code, and is saved when it is cancelled") {
  SlurmCluster slurm(2);
  SlurmJob job(&slurm, {.max_steps = 1'000'000});
  job.Submit({"--no_such_flag"});
  job.AwaitState("FAILED");
  INFO(job.Logs());
  CHECK(job.Field("ExitCode") == "64:0");
  CHECK_THAT(job.Logs(),
             Catch::Matchers::Contains("chief has ended with 64:\nchief: --no_such_flag"));

  job.Submit();
  const int64_t step = job.AwaitStepBeyond(10);
  slurm.Run({"/usr/bin/scancel", job.id()});
  job.AwaitState("CANCELLED");
  CHECK(job.Field("ExitCode") == "143:0");
  const int64_t saved = job.SavedStep();
  CHECK(saved >= step);

  // The same command goes on with it.
  job.Submit();
  job.AwaitStepBeyond(saved);
  CHECK(job.CountRestored(saved) == 1);
}

}  // namespace
}  // namespace lockstep::test
