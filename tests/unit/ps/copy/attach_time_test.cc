// How long steps take while a new copy on the same host is made, and with it. Printed by
//   bazel test //tests/unit/ps/copy:attach_time_test --test_arg='[.time]' --test_output=all
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/transport/grpc_shm/shared_memory_registry.h"
#include "ps/copy/copy_senders.h"
#include "ps/service/ps_server.h"
#include "tests/support/await.h"
#include "tests/unit/ps/copy/saved_tensors.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::kCommand;
using test::PlacementOf;
using test::PlanOf;

constexpr int kStepsAlone = 20;

CreateVariablesRequest Plan(int64_t elements) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"dense", {elements}, 0, true, 2}}), 1, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(1);
  plan.mutable_transport()->set_shared_memory(TransportDef::COPY);
  return plan;
}

// A primary whose worker's gradient lies in memory, and its copy behind a server.
class Job {
 public:
  explicit Job(int64_t elements)
      : plan_(Plan(elements)),
        gradient_(std::make_shared<Tensor>(DType::kFloat32, Shape({elements}))),
        senders_(/*ps=*/0, nullptr, Clock::Real()),
        copy_({.make_value_memory = [this](uint64_t bytes) { return memory_.MakeValues(bytes); }}),
        primary_(plan_, {.make_copy_target =
                             [this](const auto& of) {
                               primary_at_copy_ = of.identity;
                               return senders_.Make(of);
                             }}),
        server_(*PsServer::Start(&copy_,
                                 {.address = "127.0.0.1:0",
                                  .memory = &memory_,
                                  .identity = {.task_index = 0,
                                               .clusters = std::make_shared<KnownClusterSpecs>("c"),
                                               .incarnation = Incarnation(3)}})) {
    std::ranges::fill(gradient_->as<float>(), 0.5f);
  }
  ~Job() { senders_.Close(); }

  void Attach() {
    View view = test::ViewOf(0);
    view.is_copy = true;
    REQUIRE(copy_.SetView(view).ok());
    CreateVariablesRequest plan = plan_;
    plan.set_awaits_state(true);
    REQUIRE(copy_.CreateVariables(plan).ok());
    View primarys = test::ViewOf(1);
    primarys.copy_address = absl::StrCat("127.0.0.1:", server_->port());
    primarys.makes_copy = true;
    REQUIRE(primary_.shard.SetView(primarys).ok());
  }
  bool AwaitsState() const { return copy_.GetView().awaits_state; }
  // Whether the copy reads the primary's means where they lie.
  bool SharesMemory() const {
    lockstep::WorkerIdentity primary;
    primary.set_job(primary_at_copy_.job);
    primary.set_epoch(primary_at_copy_.epoch.value());
    primary.set_worker(primary_at_copy_.worker.value());
    primary.set_incarnation(primary_at_copy_.incarnation.value());
    return memory_.GradientsOf(primary).ok();
  }
  // The copy serves from now on, at the primary's version.
  void CheckSameTensors() {
    View served = test::ViewOf(1);
    served.committed = GlobalStep(step_);
    REQUIRE(copy_.SetView(served).ok());
    CHECK(test::SavedTensors(&copy_, step_) == test::SavedTensors(&primary_.shard, step_));
  }

  // From the gradient to the answered grant.
  absl::Duration Step() {
    Answer<ClosedStep> closed;
    primary_.shard.Grant({.command = kCommand, .step = GlobalStep(step_), .learning_rate = 0.1f},
                         closed.done());
    PushArguments arguments{.worker = test::IdentityOf(0),
                            .push_seq = PushSeq(static_cast<uint64_t>(step_) + 1),
                            .local_step = GlobalStep(step_)};
    arguments.pieces.push_back({VariableId(0), DType::kFloat32, gradient_->shape(), 0,
                                static_cast<uint64_t>(gradient_->num_bytes())});
    arguments.tensors = test::Borrowed({gradient_->view().bytes()}, gradient_);
    const absl::Duration begin = Clock::Real()->Monotonic();
    REQUIRE(primary_.shard.Push(arguments).ok());
    REQUIRE(closed.Wait().ok());
    ++step_;
    return Clock::Real()->Monotonic() - begin;
  }

 private:
  const CreateVariablesRequest plan_;
  const std::shared_ptr<Tensor> gradient_;
  SharedMemoryRegistry memory_;
  CopySenders senders_;
  Shard copy_;
  ps::WorkerIdentity primary_at_copy_;
  Harness primary_;
  const std::unique_ptr<PsServer> server_;
  int64_t step_ = 0;
};

void Print(const char* what, std::vector<absl::Duration> steps) {
  std::ranges::sort(steps);
  std::cout << "  " << what << ": " << steps.size() << " steps, median "
            << absl::FormatDuration(absl::Trunc(steps[steps.size() / 2], absl::Microseconds(1)))
            << ", worst " << absl::FormatDuration(absl::Trunc(steps.back(), absl::Microseconds(1)))
            << "\n";
}

void Measure(int64_t mebibytes) {
  std::cout << mebibytes << " MiB, and as much of momentum\n";
  Job job(mebibytes << 18);
  std::vector<absl::Duration> alone, attaching, pair;
  for (int i = 0; i < kStepsAlone; ++i) job.Step();
  for (int i = 0; i < kStepsAlone; ++i) alone.push_back(job.Step());
  job.Attach();
  while (job.AwaitsState()) attaching.push_back(job.Step());
  for (int i = 0; i < kStepsAlone; ++i) pair.push_back(job.Step());
  Print("alone", alone);
  Print("while the copy is made", attaching);
  Print("with the copy", pair);
}

TEST_CASE("how long steps take while a new copy is made", "[.time]") {
  for (const int64_t mebibytes : {1, 16, 512}) Measure(mebibytes);
}

TEST_CASE("a new copy in shared memory gets the state while steps go on") {
  Job job(1 << 20);
  job.Step();
  job.Attach();
  int steps = 0;
  for (; job.AwaitsState(); ++steps) job.Step();
  CHECK(steps > 8);  // at most an eighth at each step
  CHECK(job.SharesMemory());
  job.CheckSameTensors();
}

}  // namespace
}  // namespace lockstep::ps
