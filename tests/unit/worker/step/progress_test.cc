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

TEST_CASE("a worker whose towers train by themselves tells their sum, and waits when all wait") {
  std::vector<Progress> towers(2);
  towers[0].StartStep(GlobalStep(4));
  towers[1].StartStep(GlobalStep(9));
  towers[0].Computed(10, 2, 1);
  towers[1].Computed(20, 4, 3);
  towers[0].Pushed(3, 1);
  towers[1].Pushed(2, 2);
  towers[0].WaitedForData(0.5);
  towers[0].WaitedForData(0.5);
  towers[1].WaitedForData(2);
  towers[0].Trained(7);
  towers[0].Trained(8);
  towers[1].Trained(10);
  towers[0].WaitFor("its own data");
  const ProgressReport one_waits = Combine(towers);
  CHECK(one_waits.seconds_waiting_for_data == 1.5);
  CHECK(one_waits.seconds_training == 9);
  CHECK(one_waits.waiting_for.empty());
  CHECK(one_waits.local_step == GlobalStep(9));
  CHECK(one_waits.examples == 30);
  CHECK(one_waits.accepted == 5);
  CHECK(one_waits.stale == 3);
  CHECK(one_waits.seconds_computing == 3);  // both at once
  CHECK(one_waits.loss == 2);
  towers[1].WaitFor("the newest values");
  CHECK(Combine(towers).waiting_for == "its own data");
  towers[0].Finish();
  CHECK_FALSE(Combine(towers).done);
  towers[1].Finish();
  CHECK(Combine(towers).done);
}

}  // namespace
}  // namespace lockstep::worker
