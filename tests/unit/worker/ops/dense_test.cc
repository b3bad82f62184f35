#include "worker/ops/dense.h"

#include <catch2/catch.hpp>
#include <cmath>

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

TEST_CASE("a relu behind dense keeps a NaN, which one of its variables had") {
  TestOps ops(2);
  const std::unique_ptr<Op> op = Made(ops.Make(DenseOptions{{.batch = 32}, 100, 65, true, true}));
  Array kernel = Array::Random({100, 65}, "kernel");
  kernel.values[3] = std::nan("");
  OpRun run(ops, {Array::Random({32, 100}, "x")}, {kernel, Array::Random({65}, "bias")}, {32, 65});
  const Array y = run.Forward(*op, Mode::kTraining);
  int64_t wrong = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    wrong += i % 65 == 3 ? !std::isnan(y.values[i]) : !(y.values[i] >= 0);
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace lockstep::worker
