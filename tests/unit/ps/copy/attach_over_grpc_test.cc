// A new copy behind a real server: its state comes in several messages a step, over several steps.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/copy/copy_senders.h"
#include "ps/service/ps_server.h"
#include "ps/service/serial_thread.h"
#include "tests/support/await.h"
#include "tests/support/fault_proxy.h"
#include "tests/unit/ps/copy/saved_tensors.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::FaultProxy;
using test::Harness;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

// With its two slots in Adam 12 MiB of state.
constexpr int64_t kElements = 1 << 20;

CreateVariablesRequest Plan(TransportDef::SharedMemory shared) {
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"large", {kElements}, 0, true, 2}, {"small", {3}, 0, true, 1}}), 1, 1);
  plan.mutable_optimizer()->mutable_adam();
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(1);
  plan.mutable_transport()->set_shared_memory(shared);
  return plan;
}

void Step(Harness* primary, int64_t step) {
  Answer<ClosedStep> closed;
  primary->shard.Grant({.command = kCommand, .step = GlobalStep(step), .learning_rate = 0.1f},
                       closed.done());
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(i % 97) - 3.5f * static_cast<float>(step);
  }
  const uint64_t push_seq = static_cast<uint64_t>(step) + 1;
  REQUIRE(primary->shard
              .Push(Message(test::IdentityOf(0), push_seq, step)
                        .Whole(0, Shape({kElements}), gradient)
                        .Whole(1, Shape({3}), {1, 2, static_cast<float>(step)})
                        .Ready(1 << 16))
              .ok());
  REQUIRE(closed.Wait().ok());
}

// `bytes_between_flips`: on the way to the copy and back; 0: the network is whole.
void CheckCopyGetsState(CreateVariablesRequest plan, int64_t bytes_between_flips) {
  Shard copy{ShardOptions()};
  const auto server =
      PsServer::Start(&copy, {.address = "127.0.0.1:0",
                              .identity = {.task_index = 0,
                                           .clusters = std::make_shared<KnownClusterSpecs>("c"),
                                           .incarnation = Incarnation(3)}});
  REQUIRE(server.ok());
  FaultProxy proxy("127.0.0.1:0", absl::StrCat("127.0.0.1:", (*server)->port()));
  proxy.FlipBits(bytes_between_flips);
  CopySenders senders(/*ps=*/0, nullptr, Clock::Real());
  std::weak_ptr<CopyTarget> target;
  Harness primary(plan, {.make_copy_target = [&](const CopyTargetOptions& of) {
                    const std::shared_ptr<CopyTarget> made = senders.Make(of);
                    target = made;
                    return made;
                  }});
  Step(&primary, 0);
  View copys = test::ViewOf(0);
  copys.is_copy = true;
  REQUIRE(copy.SetView(copys).ok());
  plan.set_awaits_state(true);
  REQUIRE(copy.CreateVariables(plan).ok());
  View primarys = test::ViewOf(1);
  primarys.copy_address = proxy.address();
  primarys.makes_copy = true;
  REQUIRE(primary.shard.SetView(primarys).ok());

  while (!target.lock()->IsReady()) std::this_thread::yield();
  int64_t step = 1;
  for (; copy.GetView().awaits_state; ++step) {
    REQUIRE(step < 500);
    Step(&primary, step);
  }
  // At most an eighth at each step.
  CHECK(step > 8);
  const auto expected = test::SavedTensors(&primary.shard, step);
  View served = test::ViewOf(1);
  served.committed = GlobalStep(step);
  REQUIRE(copy.SetView(served).ok());
  CHECK(test::SavedTensors(&copy, step) == expected);
  CHECK((proxy.num_flips() > 3) == (bytes_between_flips > 0));
  senders.Close();
}

TEST_CASE("a new copy gets the state of its primary over gRPC, a part at each step") {
  const auto shared = GENERATE(TransportDef::OFF, TransportDef::COPY);
  CheckCopyGetsState(Plan(shared), 0);
}

TEST_CASE("bits that flip on the way to a copy change none of its values, with checksums") {
  CreateVariablesRequest plan = Plan(TransportDef::OFF);
  plan.mutable_transport()->set_checksums(true);
  CheckCopyGetsState(plan, 4 << 20);
}

CopyTargetOptions NobodyThere(bool is_new) {
  return {.address = "127.0.0.1:1",
          .shard = ShardIndex(0),
          .shared_bytes = uint64_t{1} << 20,
          .is_new = is_new};
}

bool HasMeansMemory() {
  std::ifstream maps("/proc/self/maps");
  const std::string all{std::istreambuf_iterator<char>(maps), {}};
  return absl::StrContains(all, "lockstep-means");
}

TEST_CASE("the memory of means goes with the copy that is left") {
  CopySenders senders(/*ps=*/0, nullptr, Clock::Real());
  std::shared_ptr<CopyTarget> target = senders.Make(NobodyThere(GENERATE(false, true)));
  CHECK(HasMeansMemory());
  target->End(absl::OkStatus());
  target = nullptr;
  while (HasMeansMemory()) std::this_thread::yield();
}

TEST_CASE("copies that are left while too much waits to be closed lose their memory, too") {
  CopySenders senders(/*ps=*/0, nullptr, Clock::Real());
  std::vector<std::shared_ptr<CopyTarget>> targets;
  for (size_t i = 0; i < 2 * SerialThread::kMaxWaiting; ++i) {
    targets.push_back(senders.Make(NobodyThere(true)));
  }
  std::shared_ptr<CopyTarget> busy = senders.Make(NobodyThere(false));
  absl::Notification go_on;
  busy->Send({.step = GlobalStep(0)},
             [&go_on](const absl::Status&) { go_on.WaitForNotification(); });
  busy = nullptr;
  targets.clear();
  go_on.Notify();
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (HasMeansMemory() && absl::Now() < deadline) std::this_thread::yield();
  CHECK_FALSE(HasMeansMemory());
}

TEST_CASE("a copy may be left by what waits for another one, when the ps ends") {
  CopySenders senders(/*ps=*/0, nullptr, Clock::Real());
  std::shared_ptr<CopyTarget> waiting = senders.Make(NobodyThere(false));
  std::shared_ptr<CopyTarget> kept = senders.Make(NobodyThere(true));
  bool is_told = false;
  waiting->Send({.step = GlobalStep(0)}, [kept, &is_told](const absl::Status& taken) {
    CHECK(absl::IsCancelled(taken));
    is_told = true;
  });
  kept = nullptr;
  waiting = nullptr;  // closed by a thread, as Close may be meanwhile
  senders.Close();
  CHECK(is_told);
}

}  // namespace
}  // namespace lockstep::ps
