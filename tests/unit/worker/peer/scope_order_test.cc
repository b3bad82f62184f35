#include "worker/peer/scope_order.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "tests/unit/worker/peer/peers_for_tests.h"

namespace lockstep::worker {
namespace {

TEST_CASE("a scope begins when all vectors of the one before are done") {
  ScopeOrder order(MergeScopes(5, 2));
  std::vector<size_t> begun;
  const auto begin = [&](size_t vector) { begun.push_back(vector); };
  for (int reduction = 0; reduction < 2; ++reduction) {
    begun.clear();
    order.Restart();
    order.BeginVectors(begin);
    CHECK(begun == std::vector<size_t>{0, 1});
    order.OnDone();
    order.BeginVectors(begin);
    CHECK(begun.size() == 2);
    order.OnDone();
    order.BeginVectors(begin);
    CHECK(begun == std::vector<size_t>{0, 1, 2, 3});
    order.OnDone();
    order.OnDone();
    order.BeginVectors(begin);
    order.OnDone();
    order.BeginVectors(begin);
    CHECK(begun == std::vector<size_t>{0, 1, 2, 3, 4});
  }
}

TEST_CASE("many scopes that are done at once need no deep stack") {
  ScopeOrder order(MergeScopes(1'000'000, 1));
  size_t begun = 0;
  std::function<void()> advance;
  const std::function<void(size_t)> begin = [&](size_t vector) {
    begun += vector == begun ? 1 : 0;
    order.OnDone();
    advance();
  };
  advance = [&] { order.BeginVectors(begin); };
  order.Restart();
  advance();
  CHECK(begun == 1'000'000);
}

// Three vectors of four elements over two workers.
GroupReduction ThreeVectors(int merge_scope) {
  const std::vector<TensorSpec> tensors(3, {"t", DType::kFloat32, Shape({4})});
  const ScheduleSpec spec{ReductionAlgorithm::kXring, {2, 1}};
  return {.topology = spec.topology,
          .tensors = tensors,
          .plan = MakeBatchPlan(PackingPlan::Unpacked(tensors), spec).value(),
          .average = false,
          .merge_scope = merge_scope};
}

TEST_CASE("no message of a scope is sent before the one before it is done") {
  test::PeerWorkers workers(2);
  const Group group = workers.GroupOf(2, 1, 0);
  const auto reducer =
      PeerGroupReducer::Create(workers.OptionsFor(workers.GroupOf(2, 1, 1), ThreeVectors(1)),
                               workers.service(1))
          .value();
  const auto receiver = std::make_shared<AnsweringReceiver>(group);
  REQUIRE(workers.service(0)->Attach(receiver).ok());
  Stranger stranger(workers, 1);
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({4}));
  const Tensor half = Tensor::Zeros(DType::kFloat32, Shape({2}));
  absl::Notification told;
  absl::Status outcome;
  const std::vector<std::vector<TensorView>> gradients = {
      {gradient.view(), gradient.view(), gradient.view()}};
  reducer->Reduce(0, gradients, [&](const absl::Status& status) {
    outcome = status;
    told.Notify();
  });
  for (int64_t instance = 0; instance < 3; ++instance) {
    // Answered when the elements have been used: the first one before it sends the second.
    for (const uint32_t number : {0, 1}) {
      SendRequest request = Stranger::RingMessage(group, 4, number);
      request.set_instance(instance);
      REQUIRE(stranger.SendAndWait(request, BytesOf(half)).ok());
    }
    for (const SendRequest& sent : receiver->requests()) CHECK(sent.instance() <= instance + 1);
  }
  told.WaitForNotification();
  CHECK(outcome.ok());
  CHECK(receiver->requests().size() == 6);
}

}  // namespace
}  // namespace lockstep::worker
