#include <cmath>

#include "tests/reference/layers.h"

namespace lockstep::reference {
namespace {

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

// x of all rows and step `t` [n, in].
Array StepOf(const Array& x, int64_t t) {
  Array step({x.dims[0], x.dims[2]});
  for (int64_t n = 0; n < x.dims[0]; ++n) {
    for (int64_t i = 0; i < x.dims[2]; ++i) {
      step.values[n * x.dims[2] + i] = x.values[(n * x.dims[1] + t) * x.dims[2] + i];
    }
  }
  return step;
}

// Row `row` of a bias, or none.
Array BiasRow(const std::vector<Array>& variables, int64_t row, int64_t width) {
  if (variables.size() < 3) return Array();
  Array bias({width});
  for (int64_t i = 0; i < width; ++i) bias.values[i] = variables[2].values[row * width + i];
  return bias;
}

// Calls advance(x of the step, h), which changes h [n, units], for each step.
template <typename Advance>
Array Unroll(const Array& x, Array h, bool sequences, const Advance& advance) {
  const int64_t time = x.dims[1];
  const int64_t units = h.dims[1];
  Array all({x.dims[0], time, units});
  for (int64_t t = 0; t < time; ++t) {
    advance(StepOf(x, t), h);
    for (int64_t n = 0; n < x.dims[0]; ++n) {
      for (int64_t u = 0; u < units; ++u) {
        all.values[(n * time + t) * units + u] = h.values[n * units + u];
      }
    }
  }
  return sequences ? all : h;
}

}  // namespace

Array Lstm(const std::vector<Array>& inputs, const std::vector<Array>& variables, bool sequences) {
  const int64_t batch = inputs[0].dims[0];
  const int64_t units = variables[1].dims[0];
  Array c = inputs.size() > 1 ? inputs[2] : Array({batch, units});
  return Unroll(inputs[0], inputs.size() > 1 ? inputs[1] : Array({batch, units}), sequences,
                [&](const Array& x, Array& h) {
                  const Array a = Dense(x, variables[0], BiasRow(variables, 0, 4 * units));
                  const Array b = Dense(h, variables[1], Array());
                  for (int64_t n = 0; n < batch; ++n) {
                    for (int64_t u = 0; u < units; ++u) {
                      const auto sum = [&](int64_t gate) {
                        const int64_t at = (n * 4 + gate) * units + u;
                        return a.values[at] + b.values[at];
                      };
                      double& cell = c.values[n * units + u];
                      cell = SigmoidOf(sum(1)) * cell + SigmoidOf(sum(0)) * std::tanh(sum(2));
                      h.values[n * units + u] = SigmoidOf(sum(3)) * std::tanh(cell);
                    }
                  }
                });
}

Array Gru(const std::vector<Array>& inputs, const std::vector<Array>& variables, bool sequences) {
  const int64_t batch = inputs[0].dims[0];
  const int64_t units = variables[1].dims[0];
  return Unroll(inputs[0], inputs.size() > 1 ? inputs[1] : Array({batch, units}), sequences,
                [&](const Array& x, Array& h) {
                  const Array a = Dense(x, variables[0], BiasRow(variables, 0, 3 * units));
                  const Array b = Dense(h, variables[1], BiasRow(variables, 1, 3 * units));
                  for (int64_t n = 0; n < batch; ++n) {
                    for (int64_t u = 0; u < units; ++u) {
                      const auto at = [&](int64_t gate) { return (n * 3 + gate) * units + u; };
                      const double z = SigmoidOf(a.values[at(0)] + b.values[at(0)]);
                      const double r = SigmoidOf(a.values[at(1)] + b.values[at(1)]);
                      const double candidate = std::tanh(a.values[at(2)] + r * b.values[at(2)]);
                      double& value = h.values[n * units + u];
                      value = z * value + (1 - z) * candidate;
                    }
                  }
                });
}

}  // namespace lockstep::reference
