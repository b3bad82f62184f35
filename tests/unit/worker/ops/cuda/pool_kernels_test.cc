// Against loops over the windows that scatter where the kernels gather.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/worker/ops/cuda/kernel_check.h"
#include "worker/ops/cuda/pool.cuh"

namespace lockstep::worker::cuda {
namespace {

constexpr LockstepPool kPools[] = {
    // Four channels of a thread at a time.
    {2, 4, {5, 4}, {3, 2}, {2, 2}, {2, 2}, {1, 0}}, {1, 12, {6, 7}, {6, 7}, {3, 3}, {1, 1}, {1, 1}},
    {2, 3, {6, 6}, {3, 3}, {2, 2}, {2, 2}, {0, 0}},  // windows side by side
    {1, 5, {7, 8}, {4, 4}, {3, 3}, {2, 2}, {1, 0}},  // that overlap, with padding
    {3, 1, {9, 7}, {3, 2}, {2, 1}, {3, 4}, {0, 0}},  // with pixels between them
    {2, 2, {2, 3}, {2, 2}, {5, 4}, {2, 2}, {2, 1}},  // larger than the image
};

int64_t NumInputs(const LockstepPool& pool) {
  return int64_t{pool.batch} * pool.input[0] * pool.input[1] * pool.channels;
}
int64_t NumOutputs(const LockstepPool& pool) {
  return int64_t{pool.batch} * pool.output[0] * pool.output[1] * pool.channels;
}

// The elements of the image in each window, in the order of rows.
std::vector<std::vector<int64_t>> Windows(const LockstepPool& pool) {
  std::vector<std::vector<int64_t>> windows;
  for (int64_t i = 0; i < NumOutputs(pool); ++i) {
    const int64_t channel = i % pool.channels;
    const int64_t column = i / pool.channels % pool.output[1];
    const int64_t row = i / pool.channels / pool.output[1] % pool.output[0];
    const int64_t example = i / pool.channels / pool.output[1] / pool.output[0];
    std::vector<int64_t>& window = windows.emplace_back();
    for (int64_t r = 0; r < pool.extent[0]; ++r) {
      for (int64_t c = 0; c < pool.extent[1]; ++c) {
        const int64_t y = row * pool.stride[0] - pool.pad[0] + r;
        const int64_t x = column * pool.stride[1] - pool.pad[1] + c;
        if (y < 0 || y >= pool.input[0] || x < 0 || x >= pool.input[1]) continue;
        window.push_back(((example * pool.input[0] + y) * pool.input[1] + x) * pool.channels +
                         channel);
      }
    }
  }
  return windows;
}

int64_t FirstLargest(Guarded<float>& x, const std::vector<int64_t>& window) {
  int64_t largest = window[0];
  for (const int64_t i : window) largest = x[i] > x[largest] ? i : largest;
  return largest;
}

int64_t CountOther(Guarded<float>& got, const std::vector<float>& wanted) {
  int64_t other = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const float value = got[static_cast<int64_t>(i)];
    other += value != wanted[i] && !(std::abs(value - wanted[i]) <= 1e-6f);
  }
  return other;
}

void CheckMaxPool(const Grid& grid, const LockstepPool& pool, Guarded<float> x) {
  const auto windows = Windows(pool);
  Guarded<float> gradient = Numbers(NumOutputs(pool), 3);
  std::vector<float> wanted;
  std::vector<float> wanted_gradient(static_cast<size_t>(NumInputs(pool)));
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t largest = FirstLargest(x, windows[i]);
    wanted.push_back(x[largest]);
    wanted_gradient[static_cast<size_t>(largest)] += gradient[static_cast<int64_t>(i)];
  }
  Guarded<float> y(NumOutputs(pool));
  Guarded<int32_t> places(NumOutputs(pool));
  Guarded<float> back(NumInputs(pool));
  Launch("lockstep_max_pool", grid, y.data(), places.data(), static_cast<const float*>(x.data()),
         pool);
  Launch("lockstep_max_pool_gradient", grid, back.data(),
         static_cast<const int32_t*>(places.data()), static_cast<const float*>(gradient.data()),
         pool);
  CHECK(CountOther(y, wanted) == 0);
  CHECK(CountOther(back, wanted_gradient) == 0);
  CHECK((y.IsIntact() && places.IsIntact() && back.IsIntact()));
  // Inference does not ask for the places.
  Guarded<float> again(NumOutputs(pool));
  Launch("lockstep_max_pool", grid, again.data(), static_cast<int32_t*>(nullptr),
         static_cast<const float*>(x.data()), pool);
  CHECK(CountOther(again, wanted) == 0);
}

TEST_CASE("a maximum and its gradient are of the first largest element") {
  for (const Grid& grid : {Grid{1, 1}, Grid{2, 32}, Grid{5, 256}}) {
    for (const LockstepPool& pool : kPools) {
      CheckMaxPool(grid, pool, Numbers(NumInputs(pool), 2));
      Guarded<float> equal(NumInputs(pool));
      for (int64_t i = 0; i < NumInputs(pool); ++i) equal[i] = -INFINITY;
      CheckMaxPool(grid, pool, equal);
    }
  }
}

TEST_CASE("a NaN is the largest of its window") {
  constexpr LockstepPool kPool = {1, 1, {1, 3}, {1, 1}, {1, 3}, {1, 3}, {0, 0}};
  for (int64_t at = 0; at < 3; ++at) {
    float x[] = {1, 3, 2};
    x[at] = std::nanf("");
    float y = 0;
    int32_t place = -1;
    Launch("lockstep_max_pool", {1, 32}, &y, &place, static_cast<const float*>(x), kPool);
    CHECK(std::isnan(y));
    CHECK(place == at);
  }
}

TEST_CASE("a mean and its gradient leave padding out") {
  for (const Grid& grid : {Grid{1, 1}, Grid{2, 32}, Grid{5, 256}}) {
    for (const LockstepPool& pool : kPools) {
      const auto windows = Windows(pool);
      Guarded<float> x = Numbers(NumInputs(pool), 2);
      Guarded<float> gradient = Numbers(NumOutputs(pool), 3);
      std::vector<float> wanted;
      std::vector<float> wanted_gradient(static_cast<size_t>(NumInputs(pool)));
      for (size_t i = 0; i < windows.size(); ++i) {
        const auto count = static_cast<float>(windows[i].size());
        wanted.push_back(0);
        for (const int64_t element : windows[i]) {
          wanted.back() += x[element] / count;
          wanted_gradient[static_cast<size_t>(element)] +=
              gradient[static_cast<int64_t>(i)] / count;
        }
      }
      Guarded<float> y(NumOutputs(pool));
      Guarded<float> back(NumInputs(pool));
      Launch("lockstep_average_pool", grid, y.data(), static_cast<const float*>(x.data()), pool);
      Launch("lockstep_average_pool_gradient", grid, back.data(),
             static_cast<const float*>(gradient.data()), pool);
      CHECK(CountOther(y, wanted) == 0);
      CHECK(CountOther(back, wanted_gradient) == 0);
      CHECK((y.IsIntact() && back.IsIntact()));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
