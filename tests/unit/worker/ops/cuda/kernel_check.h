// Calls kernels that g++ has compiled, on memory whose edges are watched.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/cuda/emulated_kernel.h"

namespace lockstep::worker::cuda {

struct Grid {
  unsigned int blocks;
  unsigned int threads;
};

// n elements with others around them that no kernel may touch.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t n) : values_(static_cast<size_t>(n + 2 * kGuard), kUntouched) {}

  T* data() { return values_.data() + kGuard; }
  T& operator[](int64_t i) { return data()[i]; }
  bool IsIntact() const {
    const auto untouched = [](T value) { return value == kUntouched; };
    return std::all_of(values_.begin(), values_.begin() + kGuard, untouched) &&
           std::all_of(values_.end() - kGuard, values_.end(), untouched);
  }

 private:
  static constexpr int64_t kGuard = 8;
  static constexpr T kUntouched = 77;
  std::vector<T> values_;
};

// From -scale to scale.
inline Guarded<float> Numbers(int64_t n, float scale) {
  Guarded<float> numbers(n);
  for (int64_t i = 0; i < n; ++i) {
    numbers[i] = scale * std::sin(static_cast<float>(i) * 1.7f + scale);
  }
  return numbers;
}

template <typename... Arguments>
void Launch(const char* name, const Grid& grid, Arguments... arguments) {
  const test::EmulatedKernel* const kernel = test::FindEmulatedKernel(name);
  REQUIRE(kernel != nullptr);
  void* addresses[] = {&arguments...};
  test::RunEmulated(kernel->bind(addresses), kernel->has_barriers, grid.blocks, grid.threads);
}

}  // namespace lockstep::worker::cuda
