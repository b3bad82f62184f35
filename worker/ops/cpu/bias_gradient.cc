#include "worker/ops/cpu/bias_gradient.h"

#include <algorithm>

#include "worker/ops/cpu/parallel.h"

namespace lockstep::worker::cpu {
namespace {

// Columns whose sums stay in registers, and rows until they are added up in double.
constexpr int kTile = 16;
constexpr int64_t kBlock = 256;

template <bool kRelu>
void SumTile(const float* output, float* gradient, int64_t rows, int64_t stride, int columns,
             double* sums) {
  float tile[kTile] = {};
  const auto add_row = [&](int64_t row, int width) {
    const float* __restrict y = kRelu ? output + row * stride : nullptr;
    float* __restrict g = gradient + row * stride;
    for (int c = 0; c < width; ++c) {
      if constexpr (kRelu) g[c] = y[c] > 0 ? g[c] : 0.0f;
      tile[c] += g[c];
    }
  };
  if (columns == kTile) {
    for (int64_t row = 0; row < rows; ++row) add_row(row, kTile);
  } else {
    for (int64_t row = 0; row < rows; ++row) add_row(row, columns);
  }
  for (int c = 0; c < columns; ++c) sums[c] += tile[c];
}

}  // namespace

BiasGradient::BiasGradient(int64_t rows, int64_t channels)
    : rows_(rows),
      channels_(channels),
      sums_(omp_get_max_threads(), std::vector<double>(channels)) {}

void BiasGradient::Run(const float* output, float* gradient, float* bias) {
  if (output == nullptr && bias == nullptr) return;
  const int64_t grain = std::max<int64_t>(kElementGrain / channels_, 1);
  const int parts = ParallelFor(rows_, grain, [&](int part, int64_t begin, int64_t end) {
    RunPart(part, begin, end, output, gradient);
  });
  if (bias == nullptr) return;
  for (int64_t c = 0; c < channels_; ++c) {
    double sum = 0;
    for (int part = 0; part < parts; ++part) sum += sums_[part][c];
    bias[c] = static_cast<float>(sum);
  }
}

void BiasGradient::RunPart(int part, int64_t begin, int64_t end, const float* output,
                           float* gradient) {
  std::vector<double>& sums = sums_[part];
  std::fill(sums.begin(), sums.end(), 0.0);
  for (int64_t row = begin; row < end; row += kBlock) {
    const int64_t rows = std::min(kBlock, end - row);
    for (int64_t c = 0; c < channels_; c += kTile) {
      const int columns = static_cast<int>(std::min<int64_t>(kTile, channels_ - c));
      const int64_t offset = row * channels_ + c;
      if (output != nullptr) {
        SumTile<true>(output + offset, gradient + offset, rows, channels_, columns, &sums[c]);
      } else {
        SumTile<false>(nullptr, gradient + offset, rows, channels_, columns, &sums[c]);
      }
    }
  }
}

}  // namespace lockstep::worker::cpu
