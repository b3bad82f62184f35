// Which engine is chosen, with a cuDNN that names the engines of the test.
#include "worker/ops/cuda/cudnn/convolution_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_cudnn.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeCudnn;
using test::FakeEngine;

// 2 images of 5x7x3, stride 2, with uneven padding.
Conv2DOptions Uneven() {
  Conv2DOptions options;
  options.batch = 2;
  options.input = {5, 7, 3};
  options.output = {3, 4, 8};
  options.window.extent = {3, 2};
  options.window.stride = {2, 2};
  options.window.pad_before = {1, 0};
  options.window.pad_after = {1, 1};
  return options;
}

absl::StatusOr<std::vector<ConvolutionPlan>> PlanAll(
    const CudnnLibrary& library, Precision precision, size_t most,
    ConvolutionPass pass = ConvolutionPass::kForward) {
  BackendDescriptor device(&library, kDevicePropertiesDescriptor);
  device.Set(kDevicePropertiesJson, std::string("{}"));
  if (const absl::Status status = device.Finalize(); !status.ok()) return status;
  return PlanConvolution(&library, {.described = &device}, {Uneven(), pass, precision, 1000}, most);
}

absl::StatusOr<ConvolutionPlan> Plan(const CudnnLibrary& library, Precision precision,
                                     ConvolutionPass pass = ConvolutionPass::kForward) {
  auto plans = PlanAll(library, precision, 1, pass);
  if (!plans.ok()) return plans.status();
  REQUIRE(plans->size() == 1);
  return plans->front();
}

// The number of the engine that is chosen; nullopt: none is.
std::optional<int64_t> Chosen(Precision precision, const std::vector<FakeEngine>& engines) {
  FakeCudnn fake(engines);
  const auto plan = Plan(FakeCudnn::library(), precision);
  if (plan.ok()) CHECK(plan->configurations == static_cast<int64_t>(engines.size()));
  if (!plan.ok()) CHECK(absl::IsUnimplemented(plan.status()));
  return plan.ok() ? std::optional(plan->engine) : std::nullopt;
}

TEST_CASE("the first engine that cuDNN names is chosen, where it may be") {
  CHECK(Chosen(Precision::kFloat32, {{.index = 1}, {.index = 2}}) == 1);
  CHECK(Chosen(Precision::kFloat32, {}) == std::nullopt);
}

TEST_CASE("engines that add in changing order or in fewer bits are passed over") {
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16}) {
    CHECK(Chosen(precision, {{.index = 1, .notes = {kNoteNondeterministic}},
                             {.index = 2, .notes = {kNoteReducedPrecisionReduction}},
                             {.index = 3}}) == 3);
  }
}

TEST_CASE("engines that round the factors are for TF32 and bfloat16 alone") {
  const std::vector<FakeEngine> engines = {{.index = 1, .notes = {kNoteTensorCore}}, {.index = 2}};
  CHECK(Chosen(Precision::kFloat32, engines) == 2);
  CHECK(Chosen(Precision::kTf32, engines) == 1);
  CHECK(Chosen(Precision::kBfloat16, engines) == 1);
}

TEST_CASE("engines that convert float32 to a type of fewer bits are passed over") {
  const std::vector<FakeEngine> engines = {
      {.index = 1, .notes = {kNoteDownConvertInputs}},
      {.index = 2, .notes = {kNoteTensorCore, kNoteDownConvertInputs}},
      {.index = 3},
  };
  CHECK(Chosen(Precision::kFloat32, engines) == 3);
  CHECK(Chosen(Precision::kTf32, engines) == 3);
  CHECK(Chosen(Precision::kBfloat16, engines) == 1);
}

TEST_CASE("an engine that cannot be planned, or needs too much memory, is passed over") {
  CHECK(Chosen(Precision::kFloat32, {{.index = 1, .can_plan = false},
                                     {.index = 2, .workspace = 1001},
                                     {.index = 3, .workspace = 1000}}) == 3);
  CHECK(Chosen(Precision::kFloat32, {{.workspace = 1001}}) == std::nullopt);
}

TEST_CASE("as many engines as are asked for are planned, in their order") {
  FakeCudnn fake(
      {{.index = 1}, {.index = 2, .notes = {kNoteNondeterministic}}, {.index = 3}, {.index = 4}},
      {{.index = 5}});
  for (const size_t most : {1, 2, 3, 4}) {
    const auto plans = PlanAll(FakeCudnn::library(), Precision::kFloat32, most);
    REQUIRE(plans.ok());
    std::vector<int64_t> engines;
    for (const ConvolutionPlan& plan : *plans) engines.push_back(plan.engine);
    std::vector<int64_t> expected = {1, 3, 4};
    expected.resize(std::min(most, expected.size()));
    CHECK(engines == expected);  // none to fall back on where others may be chosen
  }
}

TEST_CASE("where none may be chosen, those to fall back on are asked for") {
  FakeCudnn fake({FakeEngine{.workspace = 1001}}, {FakeEngine{.workspace = 7}});
  const auto plan = Plan(FakeCudnn::library(), Precision::kFloat32);
  REQUIRE(plan.ok());
  CHECK(plan->workspace_bytes == 7);
  CHECK(plan->configurations == 2);
}

TEST_CASE("a convolution without an engine is named") {
  FakeCudnn fake({FakeEngine{.notes = {kNoteNondeterministic}}});
  CHECK(Plan(FakeCudnn::library(), Precision::kFloat32).status() ==
        absl::UnimplementedError(
            "cuDNN has no deterministic engine for a convolution of 2 images of 5x7x3 to 3x4x8 "
            "within 1000 bytes of workspace, of 1 configurations. Remedy: another precision of "
            "the job, or --device=cpu"));
}

TEST_CASE("a convolution whose engines need too much workspace is told the least, and a remedy") {
  FakeCudnn fake({FakeEngine{.workspace = 2000}, FakeEngine{.workspace = 1001}},
                 {FakeEngine{.workspace = 1500}});
  CHECK_THAT(std::string(Plan(FakeCudnn::library(), Precision::kFloat32).status().message()),
             Catch::EndsWith("within 1000 bytes of workspace, of 3 configurations; the least that "
                             "one needs is 1001 bytes. Remedy: a smaller batch per tower, a "
                             "greater --gpu_memory_limit, or a GPU with more memory"));
}

TEST_CASE("a plan tells what the first engine needs that it stands in for") {
  FakeCudnn fake({{.workspace = 2000}, {.workspace = 1001}, {.workspace = 7}});
  CHECK(Plan(FakeCudnn::library(), Precision::kFloat32)->refused_workspace_bytes == 2000);
  FakeCudnn first({FakeEngine{.workspace = 7}, FakeEngine{.workspace = 2000}});
  CHECK(Plan(FakeCudnn::library(), Precision::kFloat32)->refused_workspace_bytes == 0);
}

TEST_CASE("the workspace of convolutions is a share of the memory, and 640 MiB at least") {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  CHECK(MostConvolutionWorkspace(0) == int64_t{640} << 20);
  CHECK(MostConvolutionWorkspace(20 * kGiB) == int64_t{640} << 20);
  CHECK(MostConvolutionWorkspace(80 * kGiB) == int64_t{2560} << 20);
}

TEST_CASE("cuDNN is told the convolution, uneven padding included") {
  for (const auto& [pass, operation] :
       {std::pair(ConvolutionPass::kForward, kForwardDescriptor),
        std::pair(ConvolutionPass::kInputGradient, kBackwardDataDescriptor),
        std::pair(ConvolutionPass::kKernelGradient, kBackwardFilterDescriptor)}) {
    FakeCudnn fake({FakeEngine()});
    REQUIRE(Plan(FakeCudnn::library(), Precision::kBfloat16, pass).ok());
    using Numbers = std::vector<int64_t>;
    CHECK(fake.LastSet(kConvolutionDescriptor, kConvolutionPaddingBefore) == Numbers{1, 0});
    CHECK(fake.LastSet(kConvolutionDescriptor, kConvolutionPaddingAfter) == Numbers{1, 1});
    CHECK(fake.LastSet(kConvolutionDescriptor, kConvolutionStrides) == Numbers{2, 2});
    // The output is described last.
    CHECK(fake.LastSet(kTensorDescriptor, kTensorDimensions) == Numbers{2, 8, 3, 4});
    CHECK(fake.LastSet(kTensorDescriptor, kTensorStrides) == Numbers{3 * 4 * 8, 1, 4 * 8, 8});
    CHECK(fake.LastSet(kTensorDescriptor, kTensorDataType) == Numbers{kDataBfloat16});
  }
}

TEST_CASE("whichever call says what cuDNN cannot do, another engine or none is chosen") {
  const CudnnStatus cannot = GENERATE(kCudnnNotSupported, kCudnnCompilationFailed);
  const std::vector<FakeEngine> engines = {{.index = 1}};
  const std::vector<FakeEngine> fallback = {{.index = 2}};
  int64_t calls = 0;
  {
    FakeCudnn fake(engines, fallback);
    REQUIRE(Plan(FakeCudnn::library(), Precision::kFloat32)->engine == 1);
    calls = fake.calls();
  }
  int64_t fell_back = 0;
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    FakeCudnn fake(engines, fallback);
    fake.FailCall(n, cannot);
    const auto plan = Plan(FakeCudnn::library(), Precision::kFloat32);
    if (plan.ok()) CHECK(plan->engine == 2);
    if (!plan.ok()) CHECK(absl::IsUnimplemented(plan.status()));
    fell_back += plan.ok() ? 1 : 0;
  }
  CHECK(fell_back > 6);  // where the heuristics are asked, and where the plan is made
}

TEST_CASE("whichever call of cuDNN fails, the error names it and nothing is left behind") {
  const std::vector<FakeEngine> engines = {{.notes = {kNoteNondeterministic}}, {}};
  int64_t calls = 0;
  {
    FakeCudnn fake(engines);
    REQUIRE(Plan(FakeCudnn::library(), Precision::kFloat32).ok());
    CHECK(fake.live() == 0);
    calls = fake.calls();
  }
  REQUIRE(calls > 50);
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    FakeCudnn fake(engines);
    fake.FailCall(n);
    const auto status = Plan(FakeCudnn::library(), Precision::kFloat32).status();
    CHECK(fake.live() == 0);
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(std::string(status.message()), Catch::Contains("cudnnBackend"));
    CHECK_THAT(std::string(status.message()), Catch::Contains("CUDNN_STATUS_FAKE (why)"));
    CHECK(ExitCodeFor(status) == ExitCode::kDeviceFailed);
  }
}

TEST_CASE("a machine without cuDNN is told what to install") {
  const absl::Status missing = CudnnLibrary::Open("libno_such_cudnn.so.9").status();
  CHECK(absl::IsFailedPrecondition(missing));
  CHECK_THAT(std::string(missing.message()), Catch::Contains("Remedy: install cuDNN 9.8 or later"));
  CHECK_THAT(std::string(CudnnLibrary::Open("libm.so.6").status().message()),
             Catch::Contains("libm.so.6 has no cudnnGetErrorString"));
}

TEST_CASE("a cuDNN before 9.8 is refused with its version, though it has every function") {
  CudnnFunctions functions = *FakeCudnn::library().operator->().operator->();
  CHECK(CudnnLibrary::Create(functions).ok());
  functions.GetVersion = [] { return size_t{90701}; };
  const absl::Status refused = CudnnLibrary::Create(functions).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Catch::StartsWith("cuDNN is too old: version 9.7.1. Remedy: install cuDNN 9.8"));
}

}  // namespace
}  // namespace lockstep::worker::cuda
