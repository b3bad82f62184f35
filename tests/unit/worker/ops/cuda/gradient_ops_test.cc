// Ops on gradients on a GPU: what the CPU's give.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/limits.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/ops/op_check.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cuda/ops.h"
#include "worker/ops/gradient_op.h"

namespace lockstep::worker::cuda {
namespace {

using Vectors = std::vector<std::vector<float>>;

// Of which operands are the outputs; the inputs are the first `inputs` operands.
struct Operands {
  Vectors values;
  size_t inputs = 0;
  std::vector<size_t> outputs;
};

// The outputs after one call.
template <typename Options>
absl::StatusOr<Vectors> RunOn(TestOps& ops, const Options& options, const Operands& operands) {
  const auto op = *ops.Make(options);
  Staging staging(ops.device());
  std::vector<Tensor> hosts;
  for (const std::vector<float>& values : operands.values) {
    const auto elements = static_cast<int64_t>(values.size());
    Tensor& host = hosts.emplace_back(DType::kFloat32, Shape({elements}));
    std::ranges::copy(values, host.as<float>().begin());
    staging.AddPlace(host.num_bytes());
  }
  REQUIRE(staging.Allocate().ok());
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const auto place = static_cast<int>(i);
    const TensorView view = *staging.ToDevice(place, hosts[i].view(), ops.stream());
    if (i < operands.inputs) inputs.push_back(view);
  }
  std::vector<MutableTensorView> outputs;
  for (const size_t i : operands.outputs) {
    outputs.push_back(*staging.OnDevice(static_cast<int>(i), hosts[i].view()));
  }
  const GradientOp::Args args{inputs, outputs};
  const absl::Status status = op->Run(args, ops.stream());
  for (size_t i = 0; i < outputs.size(); ++i) {
    Staging::CopyToHost(outputs[i], hosts[operands.outputs[i]].view(), ops.stream());
  }
  REQUIRE(ops.Finish().ok());
  if (!status.ok()) return status;
  Vectors results;
  for (const size_t i : operands.outputs) {
    results.emplace_back(hosts[i].as<float>().begin(), hosts[i].as<float>().end());
  }
  return results;
}

template <typename Options>
Vectors OnCpu(const Options& options, const Operands& operands) {
  TestOps cpu(std::make_shared<CpuDevice>(1));
  return *RunOn(cpu, options, operands);
}
template <typename Options>
absl::StatusOr<Vectors> OnGpu(const Options& options, const Operands& operands) {
  TestOps gpu(test::MakeTestDevice(/*threads=*/1), Ops());
  return RunOn(gpu, options, operands);
}

// NaN equals NaN. Sums of squares are added in another order than the CPU's.
void CheckClose(const Vectors& got, const Vectors& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t j = 0; j < wanted[i].size(); ++j) {
      INFO("tensor " << i << ", element " << j);
      if (std::isnan(wanted[i][j])) {
        CHECK(std::isnan(got[i][j]));
      } else {
        CHECK((got[i][j] == wanted[i][j] ||
               std::abs(got[i][j] - wanted[i][j]) <= 2e-7f * std::abs(wanted[i][j])));
      }
    }
  }
}

std::vector<float> Waves(size_t n, float scale) {
  std::vector<float> values;
  for (size_t i = 0; i < n; ++i) {
    values.push_back(scale * std::sin(static_cast<float>(i) * 0.7f + 1));
  }
  return values;
}

TEST_CASE("the mean over towers is the CPU's") {
  const Operands operands = {{{1, 2, 3}, {0.1f, 0.2f, 0.3f}, {7, 8, 1e-8f}, {0, 0, 0}}, 3, {3}};
  for (const MeanOptions& options : {MeanOptions{}, MeanOptions{.count = 5}}) {
    CHECK(*OnGpu(options, operands) == OnCpu(options, operands));
  }
}

TEST_CASE("a moving average after the updates of all towers is the CPU's, over any of them") {
  const MovingAverageOptions options{0.9f};
  for (const size_t towers : {1, 2, 5}) {
    Operands operands = {{Waves(70, 1)}, towers + 1, {}};
    for (size_t tower = 0; tower < towers; ++tower) {
      operands.values.push_back(Waves(70, 1.5f + static_cast<float>(tower)));
    }
    for (size_t over = 1; over <= towers; ++over) {
      operands.outputs = {over};
      CHECK(*OnGpu(options, operands) == OnCpu(options, operands));
    }
  }
}

TEST_CASE("a moving average of as many towers as a worker can have is the CPU's") {
  const MovingAverageOptions options{0.9f};
  Operands operands = {{Waves(70, 1)}, limits::kMaxTowers + 1, {1}};
  for (int64_t tower = 0; tower < limits::kMaxTowers; ++tower) {
    operands.values.push_back(Waves(70, 1.5f + static_cast<float>(tower)));
  }
  const absl::StatusOr<Vectors> average = OnGpu(options, operands);
  REQUIRE(average.ok());
  CHECK(*average == OnCpu(options, operands));
}

TEST_CASE("clipping is the CPU's") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Vectors> cases = {
      {{3, -4}},
      {{0, 0, 0}},
      {{1e-3f, 2e-3f}, {1e-4f}},
      {Waves(1, 1), Waves(65, 3), Waves(5000, 0.1f)},
      {Waves(300000, 2)},
      {{1, 2, nan}, {3}},
      {{1, -inf, 2}, {3}},
      {{1e30f, 2e30f}, {3}},  // whose norm is beyond float
  };
  for (const ClippingKind kind : {ClippingKind::kNone, ClippingKind::kValue, ClippingKind::kNorm,
                                  ClippingKind::kGlobalNorm}) {
    for (const Vectors& tensors : cases) {
      INFO("kind " << static_cast<int>(kind) << ", case " << &tensors - cases.data());
      Operands operands = {tensors, 0, {}};
      for (size_t i = 0; i < tensors.size(); ++i) operands.outputs.push_back(i);
      const ClippingOptions options{{kind, 1.5f}, static_cast<int64_t>(tensors.size())};
      CheckClose(*OnGpu(options, operands), OnCpu(options, operands));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker::cuda
