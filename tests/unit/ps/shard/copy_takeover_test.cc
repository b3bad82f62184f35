// Another chief takes command of a copy while the copy applies a mean.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
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

// The copy has the means of step 0, and applies the last one meanwhile.
absl::StatusOr<PushResult> DeliverStep(Pair* pair, absl::FunctionRef<void()> meanwhile) {
  pair->primary.Grant(0, 2);
  pair->PushStep();
  REQUIRE(pair->target->sent.size() == 2);
  const StepMeans& last = pair->target->sent[1].means;
  REQUIRE(Deliver(pair->target->sent[0].means, &pair->copy.shard).ok());
  Pause pause;
  next_pause = &pause;
  absl::StatusOr<PushResult> delivered;
  std::thread delivery([&] { delivered = Deliver(last, &pair->copy.shard); });
  pause.is_reached.WaitForNotification();
  meanwhile();
  pause.is_over.Notify();
  delivery.join();
  for (test::HeldMeans::Sent& sent : std::exchange(pair->target->sent, {})) {
    sent.taken(absl::OkStatus());
  }
  return delivered;
}

// The primary makes step 1, and its copy gets the means.
void TrainStepOne(Pair* pair) {
  pair->primary.Grant(1, 2);
  for (const uint32_t worker : {0u, 1u}) {
    pair->primary.Push(worker, 2, 1, 0, {1, 1});
    pair->primary.Push(worker, 2, 1, 1, {1});
  }
  pair->CopyAll();
}

TEST_CASE("a copy closes the step that it applies while another chief takes command") {
  Pair pair(PausingPlan());
  absl::Status taken_over;
  const auto delivered = DeliverStep(&pair, [&] {
    View view = test::ViewOf(0);
    view.is_copy = true;
    view.command.set_term(2);
    taken_over = pair.copy.shard.SetView(view).status();
  });
  REQUIRE(taken_over.ok());
  REQUIRE(delivered.ok());
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(1));
  TrainStepOne(&pair);
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(2));
}

TEST_CASE("a copy that cannot serve yet stays the copy of its primary, as if it were not asked") {
  Pair pair(PausingPlan());
  View view = test::ViewOf(2);
  view.command.set_term(2);
  StepMeans first, last;
  absl::StatusOr<PushResult> held;
  absl::Status refused;
  const auto delivered = DeliverStep(&pair, [&] {
    first = pair.target->sent[0].means;
    last = pair.target->sent[1].means;
    first.step = last.step = GlobalStep(1);
    held = Deliver(last, &pair.copy.shard);
    refused = pair.copy.shard.SetView(view).status();
  });
  REQUIRE(delivered.ok());
  INFO(held.status().ToString());
  REQUIRE(held.ok());
  INFO(refused.ToString());
  REQUIRE(absl::IsUnavailable(refused));
  CHECK(absl::StrContains(refused.message(), "still applies step 0"));
  CHECK(pair.copy.shard.GetView().is_copy);
  CHECK(pair.copy.shard.GetView().term == Term(1));
  // The chief that asked is gone: its successor finds a pair that goes on.
  CHECK(Deliver(first, &pair.copy.shard).ok());
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(2));
  REQUIRE(pair.copy.shard.SetView(view).ok());
  CHECK_FALSE(pair.copy.shard.GetView().is_copy);
}

}  // namespace
}  // namespace lockstep::ps
