#include "tests/support/cuda/fake_convolution.h"

#include <vector>

#include "worker/ops/cuda/cudnn/cudnn_api.h"

namespace lockstep::test {
namespace {

int64_t Offset(const FakeTensor& tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2] +
         d * tensor.strides[3];
}

int64_t Size(const FakeTensor& tensor) {
  return tensor.dimensions[0] * tensor.dimensions[1] * tensor.dimensions[2] * tensor.dimensions[3];
}

// Calls multiply(offset of the input, of the filter, of the output) for each product of the
// convolution.
template <typename Multiply>
void ForEachProduct(const FakeConvolution& c, const Multiply& multiply) {
  const auto& [images, channels, height, width] = c.input.dimensions;
  const auto& [filters, unused, rows, columns] = c.filter.dimensions;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t y = 0; y < c.output.dimensions[2]; ++y) {
      for (int64_t x = 0; x < c.output.dimensions[3]; ++x) {
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t in_y = y * c.stride[0] - c.padding[0] + r;
          if (in_y < 0 || in_y >= height) continue;
          for (int64_t s = 0; s < columns; ++s) {
            const int64_t in_x = x * c.stride[1] - c.padding[1] + s;
            if (in_x < 0 || in_x >= width) continue;
            for (int64_t channel = 0; channel < channels; ++channel) {
              for (int64_t filter = 0; filter < filters; ++filter) {
                multiply(Offset(c.input, image, channel, in_y, in_x),
                         Offset(c.filter, filter, channel, r, s),
                         Offset(c.output, image, filter, y, x));
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

void FakeConvolution::Run() const {
  const FakeTensor& result = operation == worker::cuda::kForwardDescriptor        ? output
                             : operation == worker::cuda::kBackwardDataDescriptor ? input
                                                                                  : filter;
  std::vector<double> sums(static_cast<size_t>(Size(result)));
  ForEachProduct(*this, [&](int64_t in, int64_t of_filter, int64_t out) {
    if (&result == &output) {
      sums[static_cast<size_t>(out)] += input.elements.At(in) * filter.elements.At(of_filter);
    } else if (&result == &input) {
      sums[static_cast<size_t>(in)] += output.elements.At(out) * filter.elements.At(of_filter);
    } else {
      sums[static_cast<size_t>(of_filter)] += input.elements.At(in) * output.elements.At(out);
    }
  });
  for (size_t i = 0; i < sums.size(); ++i) {
    result.elements.Set(static_cast<int64_t>(i), sums[i]);
  }
}

}  // namespace lockstep::test
