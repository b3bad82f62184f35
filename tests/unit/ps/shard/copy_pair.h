// A primary and its copy: what the primary sends is held until the test says what becomes of it.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {

inline constexpr char kCopyAddress[] = "copy:1";

// Holds what is sent until the test says what becomes of it.
class HeldMeans : public CopyTarget {
 public:
  struct Sent {
    StepMeans means;
    StatusCallback taken;
  };

  MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape) override {
    return memory_.try_emplace(variable, dtype, shape).first->second.view();
  }
  void Send(StepMeans means, StatusCallback taken) override {
    if (end_.has_value()) return taken(*end_);
    sent.push_back({std::move(means), std::move(taken)});
  }
  bool IsReady() const override { return is_ready; }
  void BeginState(StateBegin begin) override { begun = begin.step; }
  bool LacksState() const override { return false; }
  void SendState(GlobalStep, std::vector<std::span<const std::byte>>,
                 StatusCallback taken) override {
    taken(absl::OkStatus());
  }
  void End(const absl::Status& end) override {
    end_ = end;
    for (Sent& one : std::exchange(sent, {})) {
      if (one.taken) one.taken(end);
    }
  }
  absl::Duration Silence() const override { return absl::ZeroDuration(); }

  std::vector<Sent> sent;
  CopyTargetOptions options;
  bool is_ready = true;
  std::optional<GlobalStep> begun;

 private:
  std::map<VariableId, Tensor> memory_;
  std::optional<absl::Status> end_;
};

inline WorkerIdentity Primary() {
  return {kJob, Epoch(1), kPrimaryOfCopy.worker, kPrimaryOfCopy.incarnation};
}

// What a primary sends, as its copy gets it.
inline absl::StatusOr<PushResult> Deliver(const StepMeans& means, Shard* copy) {
  Message message(Primary(), static_cast<uint64_t>(means.step.value()) + 1, means.step.value());
  for (const MeanGradient& mean : means.gradients) {
    if (mean.rows != nullptr) {
      const std::span<const float> values = mean.rows->values.as<float>();
      message.Rows(mean.variable.value(), mean.shape, mean.rows->indices,
                   {values.begin(), values.end()});
      continue;
    }
    const auto* const values = static_cast<const float*>(mean.values.data);
    message.Whole(static_cast<uint32_t>(mean.variable.value()), mean.shape,
                  {values, values + mean.values.num_elements()});
  }
  message.arguments().mean =
      MeanArguments{.learning_rate = means.learning_rate, .stale = means.stale};
  if (!means.gradients.empty()) message.arguments().mean->mean_of = means.gradients[0].mean_of;
  return copy->Push(message.Ready());
}

inline CreateVariablesRequest PlanOfPair() {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"a", {2}}, {"b", {1}}}), 2, 2);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(2);
  return plan;
}

// In every second step a variable of another shard is trained alone.
inline CreateVariablesRequest PairWithIdleSteps() {
  CreateVariablesRequest plan = PlanOfPair();
  plan.clear_optimizer();
  for (const uint32_t loss : {1u, 2u}) {
    LossDef* const def = plan.add_losses();
    def->set_name(loss == 1 ? "here" : "there");
    def->mutable_optimizer()->mutable_sgd();
    plan.mutable_placement()->add_turns(1);
  }
  for (VariableSpec& variable : *plan.mutable_placement()->mutable_variables()) {
    variable.set_loss(1);
  }
  return plan;
}

// A primary and its copy.
struct Pair {
  // `serving`: ShardOptions::other_place of the copy.
  explicit Pair(const CreateVariablesRequest& plan = PlanOfPair(), uint32_t workers = 2,
                const std::string& serving = "")
      : num_workers(workers),
        target(std::make_shared<HeldMeans>()),
        primary({.make_copy_target =
                     [this](const auto& of) {
                       target->options = of;
                       return target;
                     }}),
        copy({.other_place = serving}) {
    View view = ViewOf(num_workers);
    view.copy_address = kCopyAddress;
    REQUIRE(primary.shard.SetView(view).ok());
    REQUIRE(primary.shard.CreateVariables(plan).ok());
    View copys = ViewOf(0);
    copys.is_copy = true;
    REQUIRE(copy.shard.SetView(copys).ok());
    REQUIRE(copy.shard.CreateVariables(plan).ok());
  }
  ~Pair() { target->End(absl::CancelledError("over")); }

  // Both workers push all of step 0.
  void PushStep() {
    for (const uint32_t worker : {0u, 1u}) {
      primary.Push(worker, 1, 0, 0, {1, 1});
      primary.Push(worker, 1, 0, 1, {1});
    }
  }
  void DeliverAll() {
    for (const HeldMeans::Sent& sent : target->sent) {
      REQUIRE(Deliver(sent.means, &copy.shard).ok());
    }
  }
  // The copy gets what was sent, and the primary knows.
  void CopyAll() {
    DeliverAll();
    for (HeldMeans::Sent& sent : std::exchange(target->sent, {})) sent.taken(absl::OkStatus());
  }
  absl::StatusOr<ShardState> Promote(int64_t committed) {
    View view = ViewOf(num_workers);
    view.committed = GlobalStep(committed);
    return copy.shard.SetView(view);
  }

  const uint32_t num_workers;
  std::shared_ptr<HeldMeans> target;
  Harness primary;
  Harness copy;
};

}  // namespace lockstep::ps::test
