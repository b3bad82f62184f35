#include "tests/sim/step_mean.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tests/sim/gradient.h"

namespace lockstep::sim {
namespace {

// Of a whole variable, or of a row.
struct Sum {
  int gradients = 0;
  std::vector<float> values;
};

float ElementOf(const SimOptions& options, const Judged& gradient, int64_t element) {
  const GlobalStep stamp = options.asynchronous ? GlobalStep() : gradient.stamp;
  if (gradient.share.has_value()) {
    return GradientOf(*gradient.share, stamp, gradient.variable, element);
  }
  const PushSeq seed = options.same_every_time ? PushSeq() : gradient.push_seq;
  return GradientOf(gradient.worker, seed, stamp, gradient.variable, element);
}

void Add(const SimOptions& options, const Judged& gradient, int64_t first, int64_t count,
         Sum* sum) {
  const bool is_first = sum->gradients++ == 0;
  for (int64_t i = 0; i < count; ++i) {
    const float element = ElementOf(options, gradient, first + i);
    if (is_first) {
      sum->values.push_back(element);
    } else {
      sum->values[static_cast<size_t>(i)] += element;
    }
  }
}

void WriteMean(const Sum& sum, float* to) {
  std::ranges::transform(sum.values, to,
                         [&sum](float value) { return value / static_cast<float>(sum.gradients); });
}

}  // namespace

StepMean MeanOf(const SimOptions& options, uint32_t variable, const Shape& shape,
                std::vector<Judged> gradients) {
  std::ranges::stable_sort(gradients, [](const Judged& a, const Judged& b) {
    return std::tie(a.worker, a.push_seq) < std::tie(b.worker, b.push_seq);
  });
  if (!options.is_table(variable)) {
    Sum sum;
    for (const Judged& gradient : gradients) {
      Add(options, gradient, 0, shape.num_elements(), &sum);
    }
    StepMean mean{.values = Tensor(DType::kFloat32, shape)};
    WriteMean(sum, mean.values.as<float>().data());
    return mean;
  }
  std::map<int64_t, Sum> sums;  // by row
  for (const Judged& gradient : gradients) {
    for (const int64_t row : RowsOf(gradient.worker, gradient.stamp, variable, shape.dim(0))) {
      Add(options, gradient, row * kRowElements, kRowElements, &sums[row]);
    }
  }
  StepMean mean{
      .values = Tensor(DType::kFloat32, Shape({static_cast<int64_t>(sums.size()), kRowElements}))};
  for (const auto& [row, sum] : sums) {
    WriteMean(sum, mean.values.as<float>().data() + mean.rows.size() * kRowElements);
    mean.rows.push_back(row);
  }
  return mean;
}

}  // namespace lockstep::sim
