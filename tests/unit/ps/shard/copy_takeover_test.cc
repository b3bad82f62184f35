// Another chief takes command of a copy while the copy applies a mean.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/optimizer/sgd.h"
#include "common/optimizer_proto/custom_optimizer.h"
#include "tests/unit/ps/shard/copy_pair.h"

namespace lockstep::ps {
namespace {

using test::Deliver;
using test::Pair;

// What an update waits for.
struct Pause {
  absl::Notification is_reached;
  absl::Notification is_over;
};

// Of the next update, which takes it; null: it does not wait.
std::atomic<Pause*> next_pause = nullptr;

// Gradient descent that waits where the test says so.
class PausingRule final : public UpdateRule {
 public:
  absl::string_view name() const override { return "pausing"; }
  void Apply(const Update& update) const override {
    if (Pause* const pause = next_pause.exchange(nullptr)) {
      pause->is_reached.Notify();
      pause->is_over.WaitForNotification();
    }
    sgd_->Apply(update);
  }
  void ApplyRows(const RowUpdate& update) const override { sgd_->ApplyRows(update); }

 private:
  const std::unique_ptr<const UpdateRule> sgd_ = MakeSgd();
};

const bool kRegistered = RegisterOptimizer(
    "pausing", [](CustomParameters*) -> absl::StatusOr<std::unique_ptr<const UpdateRule>> {
      return std::make_unique<PausingRule>();
    });

CreateVariablesRequest PausingPlan() {
  CreateVariablesRequest plan = test::PlanOfPair();
  plan.mutable_optimizer()->mutable_custom()->set_type("pausing");
  return plan;
}

TEST_CASE("a copy closes the step that it applies while another chief takes command") {
  Pair pair(PausingPlan());
  pair.primary.Grant(0, 2);
  pair.PushStep();
  REQUIRE(pair.target->sent.size() == 2);
  const StepMeans& last = pair.target->sent[1].means;
  REQUIRE(Deliver(pair.target->sent[0].means, &pair.copy.shard).ok());
  Pause pause;
  next_pause = &pause;
  absl::StatusOr<PushResult> delivered;
  std::thread delivery([&] { delivered = Deliver(last, &pair.copy.shard); });
  pause.is_reached.WaitForNotification();
  View view = test::ViewOf(0);
  view.is_copy = true;
  view.command.set_term(2);
  const absl::Status taken_over = pair.copy.shard.SetView(view).status();
  pause.is_over.Notify();
  delivery.join();
  REQUIRE(taken_over.ok());
  REQUIRE(delivered.ok());
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(1));

  for (test::HeldMeans::Sent& sent : std::exchange(pair.target->sent, {})) {
    sent.taken(absl::OkStatus());
  }
  pair.primary.Grant(1, 2);
  for (const uint32_t worker : {0u, 1u}) {
    pair.primary.Push(worker, 2, 1, 0, {1, 1});
    pair.primary.Push(worker, 2, 1, 1, {1});
  }
  pair.CopyAll();
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(2));
}

}  // namespace
}  // namespace lockstep::ps
