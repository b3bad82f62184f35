#include "tests/reference/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep::reference {
namespace {

template <typename Function>
Array Each(Array x, const Function& f) {
  for (double& value : x.values) value = f(value);
  return x;
}

// Calls visit(n, out_y, out_x, y, x, window_y, window_x) for each pixel of the image that a window
// covers.
template <typename Visit>
void Slide(const Array& x, const Sliding& vertical, const Sliding& horizontal, const Visit& visit) {
  for (int64_t n = 0; n < x.dims[0]; ++n) {
    for (int64_t i = 0; i < vertical.output; ++i) {
      for (int64_t j = 0; j < horizontal.output; ++j) {
        for (int64_t ky = 0; ky < vertical.window; ++ky) {
          for (int64_t kx = 0; kx < horizontal.window; ++kx) {
            const int64_t row = i * vertical.stride - vertical.pad_before + ky;
            const int64_t column = j * horizontal.stride - horizontal.pad_before + kx;
            if (row < 0 || row >= x.dims[1] || column < 0 || column >= x.dims[2]) continue;
            visit(n, i, j, row, column, ky, kx);
          }
        }
      }
    }
  }
}

}  // namespace

Array Dense(const Array& x, const Array& kernel, const Array& bias) {
  const int64_t inputs = kernel.dims[0];
  const int64_t units = kernel.dims[1];
  std::vector<int64_t> dims = x.dims;
  dims.back() = units;
  Array y(dims);
  for (int64_t n = 0; n < x.rows(); ++n) {
    for (int64_t u = 0; u < units; ++u) {
      double sum = bias.values.empty() ? 0 : bias.values[u];
      for (int64_t i = 0; i < inputs; ++i) {
        sum += x.values[n * inputs + i] * kernel.values[i * units + u];
      }
      y.values[n * units + u] = sum;
    }
  }
  return y;
}

Sliding Sliding::Same(int64_t input, int64_t window, int64_t stride) {
  const int64_t output = static_cast<int64_t>(std::ceil(static_cast<double>(input) / stride));
  const int64_t padding = std::max<int64_t>(0, (output - 1) * stride + window - input);
  return {window, stride, padding / 2, output};
}

Sliding Sliding::Valid(int64_t input, int64_t window, int64_t stride) {
  return {window, stride, 0, (input - window) / stride + 1};
}

Array Conv2D(const Array& x, const Array& kernel, const Array& bias, const Sliding& vertical,
             const Sliding& horizontal) {
  const int64_t channels = kernel.dims[2];
  const int64_t filters = kernel.dims[3];
  Array y({x.dims[0], vertical.output, horizontal.output, filters});
  for (int64_t i = 0; i < y.size(); ++i) {
    y.values[i] = bias.values.empty() ? 0 : bias.values[i % filters];
  }
  Slide(x, vertical, horizontal,
        [&](int64_t n, int64_t i, int64_t j, int64_t row, int64_t column, int64_t ky, int64_t kx) {
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t f = 0; f < filters; ++f) {
              y.at(n, i, j, f) += x.at(n, row, column, c) * kernel.at(ky, kx, c, f);
            }
          }
        });
  return y;
}

Array MaxPool(const Array& x, const Sliding& vertical, const Sliding& horizontal) {
  Array y({x.dims[0], vertical.output, horizontal.output, x.dims[3]});
  std::fill(y.values.begin(), y.values.end(), -std::numeric_limits<double>::infinity());
  Slide(x, vertical, horizontal,
        [&](int64_t n, int64_t i, int64_t j, int64_t row, int64_t column, int64_t, int64_t) {
          for (int64_t c = 0; c < x.dims[3]; ++c) {
            y.at(n, i, j, c) = std::max(y.at(n, i, j, c), x.at(n, row, column, c));
          }
        });
  return y;
}

Array AveragePool(const Array& x, const Sliding& vertical, const Sliding& horizontal) {
  Array sum({x.dims[0], vertical.output, horizontal.output, x.dims[3]});
  Array count = sum;
  Slide(x, vertical, horizontal,
        [&](int64_t n, int64_t i, int64_t j, int64_t row, int64_t column, int64_t, int64_t) {
          for (int64_t c = 0; c < x.dims[3]; ++c) {
            sum.at(n, i, j, c) += x.at(n, row, column, c);
            count.at(n, i, j, c) += 1;
          }
        });
  for (int64_t i = 0; i < sum.size(); ++i) sum.values[i] /= count.values[i];
  return sum;
}

Array Relu(Array x) {
  return Each(std::move(x), [](double v) { return std::max(v, 0.0); });
}

Array Tanh(Array x) {
  return Each(std::move(x), [](double v) { return std::tanh(v); });
}

Array Sigmoid(Array x) {
  return Each(std::move(x), [](double v) { return 1 / (1 + std::exp(-v)); });
}

Moments MomentsOf(const Array& x) {
  const int64_t channels = x.dims.back();
  Moments moments{Array({channels}), Array({channels})};
  for (int64_t i = 0; i < x.size(); ++i) {
    moments.mean.values[i % channels] += x.values[i] / x.rows();
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    const double distance = x.values[i] - moments.mean.values[i % channels];
    moments.variance.values[i % channels] += distance * distance / x.rows();
  }
  return moments;
}

Array Normalise(Array x, const Moments& moments, const Array& gamma, const Array& beta,
                double epsilon) {
  const int64_t channels = x.dims.back();
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t c = i % channels;
    x.values[i] = gamma.values[c] * (x.values[i] - moments.mean.values[c]) /
                      std::sqrt(moments.variance.values[c] + epsilon) +
                  beta.values[c];
  }
  return x;
}

Array Add(const std::vector<Array>& terms) {
  Array sum(terms[0].dims);
  for (const Array& term : terms) {
    for (int64_t i = 0; i < sum.size(); ++i) sum.values[i] += term.values[i];
  }
  return sum;
}

Array Concatenate(const std::vector<Array>& parts) {
  std::vector<int64_t> dims = parts[0].dims;
  dims.back() = 0;
  for (const Array& part : parts) dims.back() += part.dims.back();
  Array joined(dims);
  joined.values.clear();
  for (int64_t row = 0; row < parts[0].rows(); ++row) {
    for (const Array& part : parts) {
      const auto begin = part.values.begin() + row * part.dims.back();
      joined.values.insert(joined.values.end(), begin, begin + part.dims.back());
    }
  }
  return joined;
}

Array Columns(const Array& x, int64_t first, int64_t count) {
  std::vector<int64_t> dims = x.dims;
  dims.back() = count;
  Array y(dims);
  for (int64_t i = 0; i < y.size(); ++i) {
    y.values[i] = x.values[i / count * x.dims.back() + first + i % count];
  }
  return y;
}

Array Embedding(const Array& indices, const Array& table, bool sum) {
  const int64_t per_example = indices.dims[1];
  const int64_t dim = table.dims[1];
  Array y({indices.dims[0], sum ? dim : per_example * dim});
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int64_t row = static_cast<int64_t>(indices.values[i]);
    const int64_t to = sum ? i / per_example : i;
    for (int64_t d = 0; d < dim; ++d) y.values[to * dim + d] += table.values[row * dim + d];
  }
  return y;
}

Array Softmax(Array scores) {
  const int64_t classes = scores.dims.back();
  for (int64_t row = 0; row < scores.rows(); ++row) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(scores.values[row * classes + c]);
    for (int64_t c = 0; c < classes; ++c) {
      double& score = scores.values[row * classes + c];
      score = std::exp(score) / sum;
    }
  }
  return scores;
}

double SoftmaxCrossEntropy(const Array& scores, const std::vector<int32_t>& labels) {
  const Array probabilities = Softmax(scores);
  double loss = 0;
  for (int64_t row = 0; row < scores.rows(); ++row) {
    loss -= std::log(probabilities.values[row * scores.dims.back() + labels[row]]);
  }
  return loss / static_cast<double>(scores.rows());
}

double SigmoidCrossEntropy(const Array& logits, const Array& targets) {
  double loss = 0;
  for (int64_t i = 0; i < logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-logits.values[i]));
    loss -= targets.values[i] * std::log(p) + (1 - targets.values[i]) * std::log(1 - p);
  }
  return loss / static_cast<double>(logits.size());
}

double L2Loss(const Array& outputs, const Array& targets) {
  double loss = 0;
  for (int64_t i = 0; i < outputs.size(); ++i) {
    const double difference = outputs.values[i] - targets.values[i];
    loss += difference * difference / 2;
  }
  return loss / static_cast<double>(outputs.rows());
}

}  // namespace lockstep::reference
