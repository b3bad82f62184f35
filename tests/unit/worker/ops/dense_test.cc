#include "worker/ops/dense.h"

#include <catch2/catch.hpp>

#include "tests/reference/layers.h"
#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;

void CheckDense(int threads, DenseOptions options) {
  INFO("batch " << options.batch << ", " << options.inputs << " -> " << options.units << ", bias "
                << options.bias << ", relu " << options.relu << ", threads " << threads);
  TestOps ops(threads);
  const std::unique_ptr<Op> op = Made(ops.Make(options));
  std::vector<Array> variables = {Array::Random({options.inputs, options.units}, "kernel")};
  if (options.bias) variables.push_back(Array::Random({options.units}, "bias"));
  CheckOp(ops, *op, {Array::Random({options.batch, options.inputs}, "x")}, variables,
          variables.size(), [&](const std::vector<Array>& x, const std::vector<Array>& v) {
            const Array y = reference::Dense(x[0], v[0], options.bias ? v[1] : Array());
            return options.relu ? reference::Relu(y) : y;
          });
}

TEST_CASE("dense agrees with its reference, forward and backward") {
  for (int threads : {1, 2}) {
    for (bool relu : {false, true}) {
      for (bool bias : {false, true}) {
        CheckDense(threads, {{.batch = 1}, 1, 1, bias, relu});
        CheckDense(threads, {{.batch = 3}, 5, 7, bias, relu});
        CheckDense(threads, {{.batch = 17}, 33, 10, bias, relu});
        CheckDense(threads, {{.batch = 32}, 100, 65, bias, relu});
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
