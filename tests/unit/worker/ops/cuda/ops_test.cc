// Ops of a GPU: the bits of the CPU where both compute the same, and what
// fails.
#include "worker/ops/cuda/ops.h"

#include <catch2/catch.hpp>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/reference/layers.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/ops/op_check.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/activation.h"
#include "worker/ops/add.h"
#include "worker/ops/columns.h"
#include "worker/ops/dropout.h"
#include "worker/ops/pool.h"
#include "worker/ops/synthetic.h"

namespace lockstep::worker::cuda {
namespace {

using reference::Array;

// The output and the gradient of the only input.
struct Results {
  std::vector<double> output;
  std::vector<float> gradient;
  bool operator==(const Results&) const = default;
};

template <typename Options>
Results ResultsOf(TestOps& ops, const Options& options, const Array& x,
                  const std::vector<int64_t>& output_dims) {
  auto op = ops.Make(options);
  REQUIRE(op.ok());
  OpRun run(ops, {x}, {}, output_dims);
  Results results;
  results.output = run.Forward(**op, Mode::kTraining, /*random_key=*/7).values;
  run.Backward(**op, Array::Random(output_dims, "gradient"));
  const std::span<const float> gradient = run.input_gradients[0].as<float>();
  results.gradient.assign(gradient.begin(), gradient.end());
  return results;
}

template <typename Options>
void CheckBitsOfCpu(const Options& options, const Array& x,
                    const std::vector<int64_t>& output_dims) {
  TestOps cpu(std::make_shared<CpuDevice>(2));
  const Results wanted = ResultsOf(cpu, options, x, output_dims);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    TestOps gpu(test::MakeTestDevice(/*threads=*/1, seed), Ops());
    CHECK(ResultsOf(gpu, options, x, output_dims) == wanted);
  }
}

TEST_CASE("dropout has the CPU's masks and bits") {
  for (const int64_t elements : {1, 2, 3, 5, 1021}) {
    const Array x = Array::Random({3, elements}, "x");
    CheckBitsOfCpu(DropoutOptions{{.batch = 3}, "drop", 0.4f, elements}, x, x.dims);
  }
}

TEST_CASE("relu and columns have the CPU's bits") {
  const Array x = Array::Random({5, 7, 11}, "x");
  CheckBitsOfCpu(ActivationOptions{{.batch = 5}, ActivationKind::kRelu, 77}, x, x.dims);
  CheckBitsOfCpu(ColumnsOptions{.positions = 35, .channels = 11, .first = 2, .count = 4}, x,
                 {5, 7, 4});
}

TEST_CASE("an op that a GPU does not have is named") {
  TestOps gpu(test::MakeTestDevice(/*threads=*/1), Ops());
  CHECK(gpu.Make(SyntheticOptions{}).status() ==
        absl::UnimplementedError("this device has no op \"synthetic\""));
}

TEST_CASE("a pool of more elements than its kernels count is refused") {
  TestOps gpu(test::MakeTestDevice(/*threads=*/1), Ops());
  PoolOptions options;
  options.batch = 1 << 15;
  options.input = {256, 256, 1};
  options.output = {256, 256, 1};
  CHECK(gpu.Make(options).status() ==
        absl::UnimplementedError("op \"pool\" on a GPU takes fewer than 2^31 elements, got "
                                 "2147483648; use a smaller batch or more towers"));
}

TEST_CASE("a pool whose window its kernels cannot count in is refused") {
  TestOps gpu(test::MakeTestDevice(/*threads=*/1), Ops());
  // Paddings and one output that a model with SAME has.
  const auto make = [&](int64_t extent, int64_t stride) {
    PoolOptions options;
    options.input = {1, 1, 1};
    options.output = {1, 1, 1};
    options.window.extent = {extent, extent};
    options.window.stride = {stride, stride};
    options.window.pad_before = {(extent - 1) / 2, (extent - 1) / 2};
    return gpu.Make(options).status();
  };
  constexpr int64_t kMostExtent = 46'340;  // its square is below 2^31
  CHECK(make(kMostExtent, (1 << 30) - 1).ok());
  for (const auto& [extent, stride] : {std::pair<int64_t, int64_t>{kMostExtent + 1, 1},
                                       {int64_t{1} << 32, 1},
                                       {1, 1 << 30},
                                       {1, int64_t{1} << 32},
                                       {1, std::numeric_limits<int64_t>::max()}}) {
    CHECK(make(extent, stride) ==
          absl::UnimplementedError(absl::StrCat(
              "op \"pool\" on a GPU takes windows of fewer than 2^31 elements, and windows and "
              "strides below 2^30, got a window of ",
              extent, "x", extent, " and strides of ", stride, "x", stride,
              "; use a window no larger than the image")));
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
