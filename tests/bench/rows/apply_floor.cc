#include "tests/bench/rows/apply_floor.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr size_t kRange = 64 * 1024;  // elements that a thread takes at once

struct Pointers {
  const float* gradients[ApplyFloor::kGradients];
  float* slots[ApplyFloor::kMostSlots];
  float* value;
};

template <size_t kSlots>
[[gnu::always_inline]] inline void AddSums(const Pointers& at, size_t begin, size_t end) {
  const float* __restrict const a = at.gradients[0];
  const float* __restrict const b = at.gradients[1];
  const float* __restrict const c = at.gradients[2];
  const float* __restrict const d = at.gradients[3];
  float* __restrict const value = at.value;
  float* __restrict const slot0 = at.slots[0];
  float* __restrict const slot1 = at.slots[1];
  float* __restrict const slot2 = at.slots[2];
  for (size_t i = begin; i < end; ++i) {
    const float sum = a[i] + b[i] + c[i] + d[i];
    value[i] += sum;
    if constexpr (kSlots > 0) slot0[i] += sum;
    if constexpr (kSlots > 1) slot1[i] += sum;
    if constexpr (kSlots > 2) slot2[i] += sum;
  }
}

// Compiled for each of these sets of vector instructions; the processor's is chosen at the start.
[[gnu::target_clones("avx512f", "avx2", "default")]] void AddRange(const Pointers& at, size_t slots,
                                                                   size_t begin, size_t end) {
  switch (slots) {
    case 0:
      return AddSums<0>(at, begin, end);
    case 1:
      return AddSums<1>(at, begin, end);
    case 2:
      return AddSums<2>(at, begin, end);
    default:
      return AddSums<3>(at, begin, end);
  }
}

}  // namespace

ApplyFloor::ApplyFloor(size_t elements, size_t slots, int threads)
    : elements_(elements), num_slots_(std::min(slots, kMostSlots)), threads_(threads) {
  for (Array& gradient : gradients_) gradient.assign(elements, 1e-3f);
  for (size_t i = 0; i < num_slots_; ++i) slots_[i].assign(elements, 1);
  value_.assign(elements, 1);
}

void ApplyFloor::Pass() {
  Pointers at = {};
  for (size_t i = 0; i < kGradients; ++i) at.gradients[i] = gradients_[i].data();
  for (size_t i = 0; i < num_slots_; ++i) at.slots[i] = slots_[i].data();
  at.value = value_.data();
  std::atomic<size_t> next{0};
  const auto add_ranges = [&] {
    for (size_t begin; (begin = next.fetch_add(kRange)) < elements_;) {
      AddRange(at, num_slots_, begin, std::min(begin + kRange, elements_));
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads_; ++i) helpers.emplace_back(add_ranges);
  add_ranges();
}

}  // namespace lockstep::bench
