#include "worker/ops/noise.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;

Array Drawn(const std::string& name, int64_t batch, int64_t elements, uint64_t key, int threads,
            Mode mode = Mode::kTraining) {
  TestOps ops(threads);
  OpTable::MadeOr<Op> op = ops.Make(NoiseOptions{{.batch = batch}, name, elements});
  REQUIRE(op.ok());
  OpRun run(ops, {}, {}, {batch, elements});
  return run.Forward(**op, mode, key);
}

TEST_CASE("noise is a function of key, name and element, on any number of threads") {
  const Array noise = Drawn("z", 1001, 33, 5, 1);
  CHECK(noise.values == Drawn("z", 1001, 33, 5, 3).values);
  CHECK(noise.values == Drawn("z", 1001, 33, 5, 1, Mode::kInference).values);
  CHECK(noise.values != Drawn("z", 1001, 33, 6, 1).values);
  CHECK(noise.values != Drawn("y", 1001, 33, 5, 1).values);
  // A batch begins as a larger one does.
  const Array first = Drawn("z", 7, 33, 5, 1);
  CHECK(std::equal(first.values.begin(), first.values.end(), noise.values.begin()));
}

TEST_CASE("noise is standard normal and its elements are independent") {
  const Array noise = Drawn("z", 1000, 101, 17, 2);
  const double n = static_cast<double>(noise.size());
  double sum = 0, squares = 0, fourth = 0, neighbours = 0;
  int64_t beyond_two = 0;
  for (int64_t i = 0; i < noise.size(); ++i) {
    const double z = noise.values[i];
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    beyond_two += std::abs(z) > 2;
    if (i > 0) neighbours += z * noise.values[i - 1];
  }
  // Five standard deviations of each of these means.
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96 / n));
  CHECK(std::abs(neighbours / n) < 5 / std::sqrt(n));
  CHECK(std::abs(static_cast<double>(beyond_two) / n - 0.0455) < 5 * std::sqrt(0.0455 / n));
}

}  // namespace
}  // namespace lockstep::worker
