#include "worker/step/progress.h"

#include <catch2/catch.hpp>

#include "worker/strategy/wait_description.h"

namespace lockstep::worker {
namespace {

class WaitingStrategy final : public UpdateStrategy {
 public:
  void BeginStep(const StepInput&, Callback<StepValues>) override {}
  void AddGradients(std::span<const int>) override {}
  void EndStep(const std::optional<StepInput>&, Callback<StepOutcome>) override {}
  std::optional<GlobalStep> PredictNext() const override { return std::nullopt; }
  std::string DescribeWait() const override { return wait.Describe(); }
  void Cancel() override {}

  WaitDescription wait;
};

TEST_CASE("a worker says whom it waits for, and at which step") {
  Progress progress;
  WaitingStrategy strategy;
  CHECK(progress.Report().waiting_for.empty());
  progress.WaitFor(&strategy);
  CHECK(progress.Report().waiting_for.empty());
  strategy.wait.Set("the other workers", GlobalStep(4986));
  CHECK(progress.Report().waiting_for == "the other workers (step 4,986)");
  progress.WaitFor("its own data");
  CHECK(progress.Report().waiting_for == "its own data");
  progress.WaitFor(&strategy);
  strategy.wait.Set("the variables", GlobalStep(7));
  CHECK(progress.Report().waiting_for == "the variables (step 7)");
  strategy.wait.Set("the newest values of the variables");
  CHECK(progress.Report().waiting_for == "the newest values of the variables");
  strategy.wait.Clear();
  CHECK(progress.Report().waiting_for.empty());
  progress.WaitFor("");
  CHECK(progress.Report().waiting_for.empty());
  progress.WaitFor(&strategy);
  progress.Finish();
  CHECK(progress.Report().waiting_for == "the end of the job");
}

}  // namespace
}  // namespace lockstep::worker
