// What a budget lets go, and how large it may be.
#include "ps/shard/held_budget.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace lockstep::ps {
namespace {

// Freeing them gives GiB back to the system, which takes a while; the shard's lock is held here.
TEST_CASE("large buffers that are let go are freed by the caller, without the lock") {
  constexpr int64_t kElements = HeldBudget::kFreedLater / sizeof(float);
  HeldBudget budget({{Shape({kElements}), HeldBudget::kFreedLater}, {Shape({10}), 40}},
                    2 * HeldBudget::kFreedLater, 2);
  std::set<const void*> memory;
  std::vector<Tensor> held;
  absl::InlinedVector<Tensor, 4> freed;
  for (int i = 0; i < 2; ++i) {
    held.push_back(*budget.Acquire(1, DType::kFloat32, 0));
    budget.Release(1, std::move(held.back()));
    held.pop_back();
  }
  budget.Close(1);
  for (int i = 0; i < 2; ++i) {
    held.push_back(*budget.Acquire(0, DType::kFloat32, 0));
    memory.insert(held.back().data());
  }
  // The small one had to go, too.
  CHECK(budget.spare_bytes() == 0);
  for (Tensor& buffer : held) budget.Release(0, std::move(buffer));
  budget.TakeFreed(&freed);
  CHECK(freed.empty());
  // Gradients that lie elsewhere need none of them.
  for (int i = 0; i < 2; ++i) budget.Borrow(HeldBudget::kFreedLater);
  CHECK(budget.spare_bytes() == 0);
  budget.TakeFreed(&freed);
  REQUIRE(freed.size() == 2);
  CHECK(std::set<const void*>{freed[0].data(), freed[1].data()} == memory);
  const auto owner = std::make_shared<Tensor>(DType::kFloat32, Shape({10}));
  budget.Release(0, Tensor::Borrow(DType::kFloat32, Shape({10}),
                                   static_cast<std::byte*>(owner->data()), owner));
  budget.TakeFreed(&freed);
  REQUIRE(freed.size() == 3);
  CHECK(freed[2].is_borrowed());
}

TEST_CASE("a budget is no larger than its limit, but for the gradients of one variable") {
  uint64_t limit = 130;
  HeldBudget budget({{Shape({10}), 40}}, 400, 2, 100);
  uint32_t replicas = 0;
  budget.SetLimit(
      [&](uint32_t of) {
        replicas = of;
        return limit;
      },
      4);
  CHECK(replicas == 4);
  CHECK(budget.budget() == 130);
  budget.SetReplicas(6, 2);
  CHECK(replicas == 6);
  CHECK(budget.budget() == 130);
  std::vector<Tensor> held;
  const auto acquire = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::optional<Tensor> buffer = budget.Acquire(0, DType::kFloat32, 0);
      if (buffer.has_value()) held.push_back(*std::move(buffer));
    }
    return held.size();
  };
  const auto release = [&] {
    for (Tensor& buffer : held) budget.Release(0, std::move(buffer));
    held.clear();
  };
  CHECK(acquire(4) == 3);
  // What is held stays; less is held from then on.
  limit = 10;
  CHECK(budget.budget() == 130);
  release();
  CHECK(acquire(4) == 2);
  CHECK(budget.budget() == 80);
  CHECK(budget.spare_bytes() == 0);
  // It grows at any time.
  limit = 1000;
  CHECK(acquire(1) == 3);
  CHECK(budget.budget() == 600);
}

}  // namespace
}  // namespace lockstep::ps
