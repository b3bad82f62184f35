// Against plain loops in double, at sizes around those of blocks.
#include <catch2/catch.hpp>
#include <functional>
#include <vector>

#include "tests/unit/worker/ops/cuda/kernel_check.h"
#include "worker/ops/cuda/block_threads.cuh"

namespace lockstep::worker::cuda {
namespace {

constexpr float kEpsilon = 0.01f;
constexpr Grid kGrids[] = {{1, 1}, {1, 32}, {2, 64}, {5, 256}};

struct Channels {
  Guarded<float> mean;
  Guarded<float> variance;
  Guarded<float> gamma;
  Guarded<float> beta;
};

Channels MakeChannels(int64_t n) {
  Channels channels = {Numbers(n, 0.5f), Numbers(n, 0.4f), Numbers(n, 2), Numbers(n, 3)};
  for (int64_t c = 0; c < n; ++c) channels.variance[c] += 1;
  return channels;
}

void ForEachShape(const std::function<void(const Grid&, int64_t rows, int64_t channels)>& test) {
  for (const Grid& grid : kGrids) {
    for (const int64_t rows : {1, 9}) {
      for (const int64_t channels : {1, 31, 64, 65, 1400}) {
        INFO(grid.blocks << " blocks of " << grid.threads << " threads, " << rows << " rows, "
                         << channels << " channels");
        test(grid, rows, channels);
      }
    }
  }
}

bool IsClose(double got, double wanted) {
  return std::abs(got - wanted) <= 2e-6 * std::max(1.0, std::abs(wanted));
}

const float* Read(Guarded<float>& numbers) { return numbers.data(); }

TEST_CASE("moments of columns equal their references") {
  ForEachShape([](const Grid& grid, int64_t rows, int64_t channels) {
    // Emulated barriers take long.
    if (channels > kRowThreads + 1 && &grid != &kGrids[2]) return;
    for (const int64_t num_parts : {int64_t{1}, rows}) {
      Guarded<float> x = Numbers(rows * channels, 2);
      Guarded<double> parts(2 * num_parts * channels);
      Guarded<float> mean(channels);
      Guarded<float> variance(channels);
      Launch("lockstep_moment_parts", grid, parts.data(), Read(x), num_parts, rows, channels);
      Launch("lockstep_moments", {grid.blocks, kRowThreads}, mean.data(), variance.data(),
             static_cast<const double*>(parts.data()), num_parts, rows, channels);
      int64_t wrong = 0;
      for (int64_t c = 0; c < channels; ++c) {
        double of_mean = 0;
        for (int64_t row = 0; row < rows; ++row) of_mean += x[row * channels + c];
        of_mean /= static_cast<double>(rows);
        double of_variance = 0;
        for (int64_t row = 0; row < rows; ++row) {
          of_variance += std::pow(x[row * channels + c] - of_mean, 2);
        }
        of_variance /= static_cast<double>(rows);
        wrong += !IsClose(mean[c], of_mean) || !IsClose(variance[c], of_variance);
      }
      CHECK(wrong == 0);
      CHECK((parts.IsIntact() && mean.IsIntact() && variance.IsIntact()));
    }
  });
}

TEST_CASE("a variance far from zero is no difference of rounded numbers, and is not negative") {
  for (const float offset : {0.0f, 1.0f, 4096.0f, -3e6f}) {
    Guarded<float> x(4);
    for (int64_t i = 0; i < 4; ++i) x[i] = offset + static_cast<float>(i % 2);
    Guarded<double> parts(2);
    float mean = 0;
    float variance = 0;
    Launch("lockstep_moment_parts", {1, 1}, parts.data(), Read(x), int64_t{1}, int64_t{4},
           int64_t{1});
    Launch("lockstep_moments", {1, kRowThreads}, &mean, &variance,
           static_cast<const double*>(parts.data()), int64_t{1}, int64_t{4}, int64_t{1});
    CHECK(variance == Approx(0.25).epsilon(1e-2));
    for (int64_t i = 0; i < 4; ++i) x[i] = offset + 0.1f;
    Launch("lockstep_moment_parts", {1, 1}, parts.data(), Read(x), int64_t{1}, int64_t{4},
           int64_t{1});
    Launch("lockstep_moments", {1, kRowThreads}, &mean, &variance,
           static_cast<const double*>(parts.data()), int64_t{1}, int64_t{4}, int64_t{1});
    CHECK(variance >= 0);
  }
}

TEST_CASE("normalised columns equal their references") {
  ForEachShape([](const Grid& grid, int64_t rows, int64_t channels) {
    Channels of = MakeChannels(channels);
    for (const bool relu : {false, true}) {
      Guarded<float> x = Numbers(rows * channels, 2);
      Guarded<float> y(rows * channels);
      Launch("lockstep_batch_norm", grid, y.data(), Read(x), Read(of.mean), Read(of.variance),
             Read(of.gamma), Read(of.beta), kEpsilon, relu, rows, channels);
      int64_t wrong = 0;
      for (int64_t i = 0; i < rows * channels; ++i) {
        const int64_t c = i % channels;
        const double normal =
            (x[i] - of.mean[c]) / std::sqrt(static_cast<double>(of.variance[c]) + kEpsilon);
        const double value = normal * of.gamma[c] + of.beta[c];
        wrong += !IsClose(y[i], relu ? std::max(value, 0.0) : value);
      }
      CHECK(wrong == 0);
      CHECK(y.IsIntact());
    }
  });
}

TEST_CASE("gradients of normalised columns equal their references") {
  ForEachShape([](const Grid& grid, int64_t rows, int64_t channels) {
    Channels of = MakeChannels(channels);
    const int64_t n = rows * channels;
    for (const bool relu : {false, true}) {
      Guarded<float> x = Numbers(n, 2);
      Guarded<float> y(n);
      Launch("lockstep_batch_norm", grid, y.data(), Read(x), Read(of.mean), Read(of.variance),
             Read(of.gamma), Read(of.beta), kEpsilon, relu, rows, channels);
      Guarded<float> gradient = Numbers(n, 3);
      Guarded<double> parts(2 * channels);
      Guarded<float> of_beta(channels);
      Guarded<float> of_gamma(channels);
      Guarded<float> frozen(n);
      Launch("lockstep_batch_norm_gradient_parts", grid, parts.data(), Read(x), Read(gradient),
             Read(of.mean), Read(of.variance), Read(of.gamma), Read(of.beta), kEpsilon, relu,
             int64_t{1}, rows, channels);
      for (int64_t c = 0; c < channels; ++c) {
        of_beta[c] = static_cast<float>(parts[c]);
        of_gamma[c] = static_cast<float>(parts[channels + c]);
      }
      Launch("lockstep_frozen_batch_norm_gradient", grid, frozen.data(), Read(y), Read(gradient),
             Read(of.variance), Read(of.gamma), kEpsilon, relu, rows, channels);
      std::vector<double> cut(static_cast<size_t>(n));
      std::vector<double> beta(static_cast<size_t>(channels));
      std::vector<double> gamma(static_cast<size_t>(channels));
      const auto normal = [&](int64_t i) {
        const int64_t c = i % channels;
        return (x[i] - of.mean[c]) / std::sqrt(static_cast<double>(of.variance[c]) + kEpsilon);
      };
      for (int64_t i = 0; i < n; ++i) {
        const auto c = static_cast<size_t>(i % channels);
        const double g = relu && !(y[i] > 0) ? 0 : gradient[i];
        cut[static_cast<size_t>(i)] = g;
        beta[c] += g;
        gamma[c] += g * normal(i);
      }
      // Over the gradient, as where nobody wants it.
      Launch("lockstep_batch_norm_gradient", grid, gradient.data(), Read(x), Read(gradient),
             Read(of.mean), Read(of.variance), Read(of.gamma), Read(of.beta), Read(of_gamma),
             Read(of_beta), kEpsilon, relu, rows, channels);
      int64_t wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t c = i % channels;
        const auto at = static_cast<size_t>(c);
        const double factor =
            of.gamma[c] / std::sqrt(static_cast<double>(of.variance[c]) + kEpsilon);
        const double g = cut[static_cast<size_t>(i)];
        const double of_moments = (beta[at] + normal(i) * gamma[at]) / static_cast<double>(rows);
        wrong += !IsClose(gradient[i], factor * (g - of_moments));
        wrong += !IsClose(frozen[i], factor * g);
      }
      for (int64_t c = 0; c < channels; ++c) {
        wrong += !IsClose(of_beta[c], beta[static_cast<size_t>(c)]);
        wrong += !IsClose(of_gamma[c], gamma[static_cast<size_t>(c)]);
      }
      CHECK(wrong == 0);
      CHECK((parts.IsIntact() && gradient.IsIntact() && frozen.IsIntact()));
    }
  });
}

TEST_CASE("a statistic follows that of the batch") {
  Guarded<float> old = Numbers(65, 2);
  Guarded<float> of_batch = Numbers(65, 3);
  Guarded<float> to(65);
  Launch("lockstep_follow", {2, 32}, to.data(), Read(old), Read(of_batch), 0.9f, int64_t{65});
  int64_t wrong = 0;
  for (int64_t i = 0; i < 65; ++i) wrong += to[i] != 0.9f * old[i] + (1 - 0.9f) * of_batch[i];
  CHECK(wrong == 0);
  CHECK(to.IsIntact());
}

}  // namespace
}  // namespace lockstep::worker::cuda
