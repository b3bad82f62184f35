#include "worker/step/progress.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

TEST_CASE("a worker says whom it waits for, and at which step") {
  Progress progress;
  CHECK(progress.Report().waiting_for.empty());
  progress.WaitForStep("the other workers", GlobalStep(4986));
  CHECK(progress.Report().waiting_for == "the other workers (step 4,986)");
  progress.WaitFor("its own data");
  CHECK(progress.Report().waiting_for == "its own data");
  progress.WaitForStep("the variables", GlobalStep(7));
  CHECK(progress.Report().waiting_for == "the variables (step 7)");
  progress.WaitFor("");
  CHECK(progress.Report().waiting_for.empty());
  progress.WaitForStep("the other workers", GlobalStep(8));
  progress.Finish();
  CHECK(progress.Report().waiting_for == "the end of the job");
}

}  // namespace
}  // namespace lockstep::worker
