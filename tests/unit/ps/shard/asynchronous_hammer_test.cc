// Many threads push into a shard of an asynchronous job while a chief, later another one, has
// versions kept: nothing is lost, nobody waits for ever, and no kept value is torn. Run it under
// ThreadSanitizer too.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kJob;
using test::Message;

constexpr uint32_t kWorkers = 4;
constexpr uint64_t kPushes = 300;
constexpr int64_t kElements = 100;
constexpr int64_t kTakeOver = 20;  // grants of the first chief

CreateVariablesRequest TwoVariables(uint32_t shard) {
  CreateVariablesRequest plan =
      test::PlanOf(test::PlacementOf({{.name = "a", .dims = {kElements}, .shard = shard},
                                      {.name = "b", .dims = {kElements}, .shard = shard}},
                                     shard + 1),
                   kWorkers, 1);
  plan.set_asynchronous(true);
  plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
  return plan;
}

// Every push changes all elements alike.
bool IsWhole(const std::vector<float>& values) {
  for (const float value : values) {
    if (value != values.front()) return false;
  }
  return !values.empty();
}

// As often as there is no room for it while the shard pauses.
absl::StatusOr<PushResult> PushUntilTaken(Shard* shard, const PushArguments& arguments) {
  while (true) {
    absl::StatusOr<PushResult> result = shard->Push(arguments);
    if (!absl::IsResourceExhausted(result.status())) return result;
    std::this_thread::yield();
  }
}

void PushAll(Shard* shard, uint32_t worker, std::atomic<bool>* failed) {
  const std::vector<float> ones(kElements, 1.0f);
  for (uint64_t seq = 1; seq <= kPushes; ++seq) {
    for (uint32_t variable = 0; variable < 2; ++variable) {
      Message message(IdentityOf(worker), seq, 0);
      message.Whole(variable, Shape({kElements}), ones);
      const auto result = PushUntilTaken(shard, message.Ready(64));
      if (!result.ok() || result->statuses[0] != PushStatus::kAccepted) *failed = true;
    }
  }
}

// Has versions kept until the pushes are over, at first as one chief, then as another.
void KeepVersions(Shard* shard, const std::atomic<bool>* is_over, std::atomic<bool>* failed,
                  uint32_t shard_index) {
  Command command = test::kCommand;
  while (shard->GetView().shard_step == GlobalStep(0)) std::this_thread::yield();
  for (int64_t step = 0; !*is_over || step <= kTakeOver; ++step) {
    if (step == kTakeOver) {
      command.set_term(2);
      View view = test::ViewOf(kWorkers, shard_index);
      view.command = command;
      if (!shard->SetView(view).ok()) *failed = true;
    }
    absl::Notification answered;
    // At the step shard a step that is over: it keeps what there is, as the others always do.
    const GlobalStep named = shard_index == 0 ? GlobalStep(0) : GlobalStep(step);
    shard->Grant({.command = command, .step = named, .keep_slots = true},
                 [&](const absl::StatusOr<ClosedStep>& closed) {
                   if (!closed.ok()) *failed = true;
                   answered.Notify();
                 });
    answered.WaitForNotification();
    shard->Pull({IdentityOf(0), named.next(), {{VariableId(0)}, {VariableId(1)}}},
                [&](const absl::StatusOr<PullResult>& pulled) {
                  if (!pulled.ok()) return void(*failed = true);
                  for (const PulledPiece& piece : pulled->pieces) {
                    if (!IsWhole(test::ValuesOf(piece))) *failed = true;
                  }
                });
    if (!shard->ReleaseSnapshot(command, named.next()).ok()) *failed = true;
  }
}

void HammerShard(uint32_t index) {
  Harness f;
  REQUIRE(f.shard.SetView(test::ViewOf(kWorkers, index)).ok());
  REQUIRE(f.shard.CreateVariables(TwoVariables(index)).ok());
  std::atomic<bool> failed = false, is_over = false;
  std::thread chief([&] { KeepVersions(&f.shard, &is_over, &failed, index); });
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] { PushAll(&f.shard, worker, &failed); });
  }
  for (std::thread& worker : workers) worker.join();
  is_over = true;
  chief.join();
  CHECK_FALSE(failed);
  const ShardReport report = f.shard.Report();
  CHECK(report.accepted == 2 * kWorkers * kPushes);
  CHECK(report.held_bytes == 0);
  CHECK(report.state.shard_step == GlobalStep(kWorkers * kPushes));
  const float expected = -static_cast<float>(kWorkers * kPushes);
  for (uint32_t variable = 0; variable < 2; ++variable) {
    CHECK(f.Read(kWorkers * kPushes, variable) == std::vector<float>(kElements, expected));
  }
}

TEST_CASE("versions of the step shard are kept while everybody pushes") { HammerShard(0); }

TEST_CASE("versions of another shard are kept while everybody pushes") { HammerShard(1); }

}  // namespace
}  // namespace lockstep::ps
