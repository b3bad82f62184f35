// Kernels, compiled for the host, against plain loops, at sizes around the edges of blocks and with
// grids that have more and fewer threads than there is work.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/philox.h"
#include "common/base/philox_key.h"
#include "common/tensor/bfloat16.h"
#include "tests/unit/worker/ops/cuda/kernel_check.h"
#include "worker/ops/cuda/block_threads.cuh"

namespace lockstep::worker::cuda {
namespace {

constexpr Grid kGrids[] = {{1, 1}, {1, 32}, {3, 64}, {5, 256}};
constexpr int64_t kSizes[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1009};

void ForEachSize(const std::function<void(const Grid&, int64_t)>& test) {
  for (const Grid& grid : kGrids) {
    for (const int64_t n : kSizes) {
      INFO(grid.blocks << " blocks of " << grid.threads << " threads, " << n << " elements");
      test(grid, n);
    }
  }
}

// The kernel `name` of x gives `wanted` of each element, to its own memory and in place.
void CheckUnary(const char* name, float (*wanted)(float), float tolerance) {
  ForEachSize([&](const Grid& grid, int64_t n) {
    Guarded<float> x = Numbers(n, 5);
    Guarded<float> y(n);
    Launch(name, grid, y.data(), static_cast<const float*>(x.data()), n);
    CHECK(y.IsIntact());
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) wrong += !(std::abs(y[i] - wanted(x[i])) <= tolerance);
    CHECK(wrong == 0);
    Launch(name, grid, x.data(), static_cast<const float*>(x.data()), n);
    CHECK(std::equal(x.data(), x.data() + n, y.data()));
    CHECK(x.IsIntact());
  });
}

void CheckBinary(const char* name, float (*wanted)(float, float)) {
  ForEachSize([&](const Grid& grid, int64_t n) {
    Guarded<float> a = Numbers(n, 0.9f);
    Guarded<float> b = Numbers(n, 3);
    Guarded<float> to(n);
    Launch(name, grid, to.data(), static_cast<const float*>(a.data()),
           static_cast<const float*>(b.data()), n);
    CHECK(to.IsIntact());
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) wrong += !(std::abs(to[i] - wanted(a[i], b[i])) <= 1e-6f);
    CHECK(wrong == 0);
    Launch(name, grid, b.data(), static_cast<const float*>(a.data()),
           static_cast<const float*>(b.data()), n);
    CHECK(std::equal(b.data(), b.data() + n, to.data()));
    CHECK(b.IsIntact());
  });
}

TEST_CASE("activations equal their references") {
  CheckUnary(
      "lockstep_relu", [](float x) { return std::max(x, 0.0f); }, 0);
  CheckUnary(
      "lockstep_tanh", [](float x) { return std::tanh(x); }, 3e-7f);
  CheckUnary(
      "lockstep_sigmoid", [](float x) { return 1 / (1 + std::exp(-x)); }, 3e-7f);
}

TEST_CASE("gradients of activations equal their references") {
  CheckBinary("lockstep_relu_gradient", [](float y, float g) { return y > 0 ? g : 0; });
  CheckBinary("lockstep_tanh_gradient", [](float y, float g) { return g * (1 - y * y); });
  CheckBinary("lockstep_sigmoid_gradient", [](float y, float g) { return g * y * (1 - y); });
}

TEST_CASE("a NaN passes relu, so that it is found") {
  float x = std::nanf("");
  float y = 0;
  Launch("lockstep_relu", {1, 32}, &y, static_cast<const float*>(&x), int64_t{1});
  CHECK(std::isnan(y));
}

TEST_CASE("sums and multiples equal their references") {
  CheckBinary("lockstep_add", [](float a, float b) { return a + b; });
  ForEachSize([](const Grid& grid, int64_t n) {
    Guarded<float> from = Numbers(n, 2);
    Guarded<float> to(n);
    Launch("lockstep_scale", grid, to.data(), static_cast<const float*>(from.data()), 0.3f, n);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) wrong += to[i] != from[i] * 0.3f;
    CHECK(wrong == 0);
    CHECK(to.IsIntact());
  });
}

TEST_CASE("dropout keeps what the host's generator says, and its gradient the same") {
  constexpr float kRate = 0.3f;
  constexpr float kScale = 1 / (1 - kRate);
  const uint64_t key = 5;
  const uint64_t* const random_key = &key;
  const Philox generator(key, "drop");
  ForEachSize([&](const Grid& grid, int64_t n) {
    Guarded<float> x = Numbers(n, 2);
    Guarded<float> y(n);
    Guarded<uint8_t> kept(n);
    Guarded<float> back(n);
    Launch("lockstep_dropout", grid, y.data(), kept.data(), static_cast<const float*>(x.data()),
           random_key, PurposeHash("drop"), kRate, kScale, n);
    Launch("lockstep_dropout_gradient", grid, back.data(), static_cast<const uint8_t*>(kept.data()),
           static_cast<const float*>(x.data()), kScale, n);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Philox::Block block = generator.At(static_cast<uint64_t>(i / 4));
      const bool keep = UniformFloat(block[static_cast<size_t>(i % 4)]) >= kRate;
      wrong += kept[i] != keep || y[i] != (keep ? x[i] * kScale : 0.0f) || back[i] != y[i];
    }
    CHECK(wrong == 0);
    CHECK((y.IsIntact() && kept.IsIntact() && back.IsIntact()));
  });
}

TEST_CASE("squares are summed in double by as many blocks as there are") {
  for (const unsigned int blocks : {1u, 2u, 7u}) {
    for (const int64_t n : kSizes) {
      INFO(blocks << " blocks, " << n << " elements");
      const Grid grid{blocks, kRowThreads};
      Guarded<float> x = Numbers(n, 5e18f);  // whose squares are beyond float
      Guarded<double> parts(blocks);
      Guarded<double> sum(1);
      Launch("lockstep_square_parts", grid, parts.data(), static_cast<const float*>(x.data()), n);
      Launch("lockstep_sum_parts", {1, kRowThreads}, sum.data(),
             static_cast<const double*>(parts.data()), int64_t{blocks});
      double wanted = 0;
      for (int64_t i = 0; i < n; ++i) wanted += static_cast<double>(x[i]) * x[i];
      CHECK(std::abs(sum[0] - wanted) <= 1e-14 * wanted);
      CHECK((parts.IsIntact() && sum.IsIntact()));
    }
  }
}

TEST_CASE("noise is Box and Muller's of what the host's generator gives") {
  const uint64_t key = 5;
  const uint64_t* const random_key = &key;
  const Philox generator(key, "z");
  ForEachSize([&](const Grid& grid, int64_t n) {
    Guarded<float> z(n);
    Launch("lockstep_noise", grid, z.data(), random_key, PurposeHash("z"), n);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Philox::Block block = generator.At(static_cast<uint64_t>(i / 4));
      const size_t pair = static_cast<size_t>(i % 4 / 2 * 2);
      const double radius = std::sqrt(-2 * std::log((block[pair] + 1.0) / 4294967296.0));
      const double angle = 2 * M_PI * block[pair + 1] / 4294967296.0;
      const double wanted = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      wrong += !(std::abs(z[i] - wanted) < 1e-6);
    }
    CHECK(wrong == 0);
    CHECK(z.IsIntact());
  });
}

TEST_CASE("a bias is added to each row, and what is below zero cut off") {
  constexpr int64_t kRows = 5;
  ForEachSize([](const Grid& grid, int64_t columns) {
    if (columns == 0) return;
    Guarded<float> bias = Numbers(columns, 1);
    for (const bool relu : {false, true}) {
      for (const bool has_bias : {false, true}) {
        Guarded<float> x = Numbers(kRows * columns, 2);
        Guarded<float> y = x;
        Launch("lockstep_bias", grid, y.data(),
               has_bias ? static_cast<const float*>(bias.data()) : nullptr, relu, kRows, columns);
        int64_t wrong = 0;
        for (int64_t i = 0; i < kRows * columns; ++i) {
          const float sum = has_bias ? x[i] + bias[i % columns] : x[i];
          wrong += y[i] != (relu ? std::max(sum, 0.0f) : sum);
        }
        CHECK(wrong == 0);
        CHECK(y.IsIntact());
      }
    }
  });
}

TEST_CASE("columns are summed in double, part by part") {
  constexpr int64_t kRows = 9;
  for (const int64_t parts : {1, 2, 9}) {
    ForEachSize([parts](const Grid& grid, int64_t columns) {
      // Emulated barriers take long.
      if (columns > kRowThreads + 1 && &grid != &kGrids[2]) return;
      Guarded<float> matrix = Numbers(kRows * columns, 2);
      Guarded<double> of_parts(parts * columns);
      Guarded<float> sums(columns);
      Launch("lockstep_column_parts", grid, of_parts.data(),
             static_cast<const float*>(matrix.data()), parts, kRows, columns);
      Launch("lockstep_sum_column_parts", {grid.blocks, kRowThreads}, sums.data(),
             static_cast<const double*>(of_parts.data()), parts, columns);
      int64_t wrong = 0;
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (int64_t row = 0; row < kRows; ++row) sum += matrix[row * columns + c];
        wrong += !(std::abs(sums[c] - sum) <= 1e-6);
      }
      CHECK(wrong == 0);
      CHECK((sums.IsIntact() && of_parts.IsIntact()));
    });
  }
}

TEST_CASE("casts round to nearest and back to the same numbers, wherever they are in memory") {
  for (const size_t offset : {0, 1}) {  // of 16 bytes, and not
    ForEachSize([offset](const Grid& grid, int64_t n) {
      const auto size = static_cast<size_t>(n);
      Guarded<float> from = Numbers(n + 1, 5);
      std::vector<BFloat16> narrow(size + 2, BFloat16(77.0f));
      Guarded<float> wide(n);
      Launch("lockstep_to_bf16", grid, narrow.data() + offset,
             static_cast<const float*>(from.data()) + offset, n);
      Launch("lockstep_from_bf16", grid, wide.data(),
             static_cast<const BFloat16*>(narrow.data()) + offset, n);
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const float value = from[i + static_cast<int64_t>(offset)];
        wrong += wide[i] != static_cast<float>(BFloat16(value));
        wrong += !(std::abs(wide[i] - value) <= std::abs(value) / 256);
      }
      CHECK(wrong == 0);
      CHECK(static_cast<float>(narrow[size + offset]) == 77.0f);
      CHECK((wide.IsIntact() && from.IsIntact()));
    });
  }
}

TEST_CASE("columns are copied from rows of one width to rows of another") {
  constexpr int64_t kFromWidth = 7;
  constexpr int64_t kToWidth = 5;
  constexpr int64_t kWidth = 3;
  ForEachSize([](const Grid& grid, int64_t rows) {
    Guarded<float> from = Numbers(rows * kFromWidth, 2);
    Guarded<float> to(rows * kToWidth);
    Launch("lockstep_copy_columns", grid, to.data(), kToWidth, int64_t{1},
           static_cast<const float*>(from.data()), kFromWidth, int64_t{4}, kWidth, rows);
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < kToWidth; ++c) {
        const bool copied = c >= 1 && c < 1 + kWidth;
        const float wanted = copied ? from[row * kFromWidth + 4 + c - 1] : 77.0f;
        wrong += to[row * kToWidth + c] != wanted;
      }
    }
    CHECK(wrong == 0);
    CHECK(to.IsIntact());
  });
}

TEST_CASE("the gradient of columns is zero beside them") {
  constexpr int64_t kChannels = 6;
  constexpr int64_t kCount = 2;
  ForEachSize([](const Grid& grid, int64_t rows) {
    for (const int64_t first : {0, 3, 4}) {
      Guarded<float> gradient = Numbers(rows * kCount, 2);
      Guarded<float> to(rows * kChannels);
      Launch("lockstep_columns_gradient", grid, to.data(),
             static_cast<const float*>(gradient.data()), kChannels, first, kCount, rows);
      int64_t wrong = 0;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < kChannels; ++c) {
          const bool inside = c >= first && c < first + kCount;
          wrong += to[row * kChannels + c] != (inside ? gradient[row * kCount + c - first] : 0.0f);
        }
      }
      CHECK(wrong == 0);
      CHECK(to.IsIntact());
    }
  });
}

}  // namespace
}  // namespace lockstep::worker::cuda
