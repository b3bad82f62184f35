// What --device chooses, on machines with a GPU that tests imitate and without.
#include "worker/backend/backend.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/cudnn/convolution.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

using Kind = DeviceChoice::Kind;

absl::Status NoDriver() {
  return absl::FailedPreconditionError("no CUDA driver. Remedy: install one");
}

TEST_CASE("--device is the CPU, GPUs by number, or whatever there is") {
  CHECK(ParseDeviceChoice("cpu")->kind == Kind::kCpu);
  CHECK(ParseDeviceChoice("auto")->kind == Kind::kAuto);
  CHECK(ParseDeviceChoice("cuda")->kind == Kind::kCuda);
  CHECK(ParseDeviceChoice("cuda")->ordinals.empty());
  CHECK(ParseDeviceChoice("cuda:12")->ordinals == std::vector{12});
  CHECK(ParseDeviceChoice("cuda:3,cuda:0")->ordinals == std::vector{3, 0});
  for (const char* const wrong :
       {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cuda:0,", "cuda:0,cpu", "cuda,cuda:1"}) {
    INFO(wrong);
    const absl::Status refused = ParseDeviceChoice(wrong).status();
    CHECK(ExitCodeFor(refused) == ExitCode::kUsage);
    CHECK(std::string(refused.message()) ==
          std::string("--device: expected cpu, auto, cuda, or GPUs such as cuda:0,cuda:1, got \"") +
              wrong + "\". Remedy: --device=auto takes what there is");
  }
  const absl::Status twice = ParseDeviceChoice("cuda:1,cuda:0,cuda:1").status();
  CHECK(ExitCodeFor(twice) == ExitCode::kUsage);
  CHECK(twice.message() ==
        "--device: cuda:1 comes twice in \"cuda:1,cuda:0,cuda:1\". Remedy: name each GPU once");
}

TEST_CASE("without a driver auto takes the CPU and says why, and cuda is refused with the remedy") {
  const Backend chosen = *Backend::Open({.kind = Kind::kAuto}, NoDriver());
  CHECK(chosen.name() == "cpu");
  CHECK(chosen.description() == "the CPU");
  CHECK(chosen.problem() == "no CUDA driver. Remedy: install one");
  CHECK(&chosen.ops() == &cpu::Ops());
  CHECK(chosen.MakeDevice(1)->is_host());

  const absl::Status refused = Backend::Open({.kind = Kind::kCuda}, NoDriver()).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK(refused.message() == "no CUDA driver. Remedy: install one; or --device=cpu");
}

TEST_CASE("the CPU is taken where it is asked for, GPU or not") {
  const auto gpu = test::MakeFakeGpu(1);
  const Backend chosen = *Backend::Open({}, &gpu->driver());
  CHECK(chosen.name() == "cpu");
  CHECK(chosen.MakeDevice(2) != chosen.MakeDevice(2));
}

TEST_CASE("a GPU is opened once, for all that computes on it") {
  const auto gpu = test::MakeFakeGpu(1);
  for (const DeviceChoice& choice : {DeviceChoice{.kind = Kind::kAuto}, {.kind = Kind::kCuda}}) {
    const Backend chosen = *Backend::Open(choice, &gpu->driver());
    CHECK(chosen.name() == "cuda:0");
    CHECK_THAT(chosen.description(), Catch::StartsWith("cuda:0 (") && Catch::Contains("GiB"));
    CHECK(&chosen.ops() == &cuda::Ops());
    CHECK(chosen.MakeDevice(1) == chosen.MakeDevice(2));
    CHECK_FALSE(chosen.MakeDevice(1)->is_host());
    CHECK(chosen.is_automatic() == (choice.kind == Kind::kAuto));
    CHECK(chosen.problem().empty());
  }
}

TEST_CASE("all GPUs are opened, or those that are named in their order") {
  const auto last = test::MakeFakeGpu(1, /*ordinal=*/2);
  const Backend all = *Backend::Open({.kind = Kind::kCuda}, &last->driver());
  CHECK(all.name() == "cuda:0,cuda:1,cuda:2");
  CHECK_THAT(all.description(), Catch::Contains("), cuda:1 ("));
  CHECK(all.num_devices() == 3);
  CHECK(all.MakeDevices(1, 5)->size() == 3);
  const auto two = *all.MakeDevices(1, 2);
  REQUIRE(two.size() == 2);
  CHECK(two[0] == all.MakeDevice(1));
  CHECK(two[0]->name() == "cuda:0");
  CHECK(two[1]->name() == "cuda:1");

  const Backend named = *Backend::Open({.kind = Kind::kCuda, .ordinals = {2, 0}}, &last->driver());
  CHECK(named.name() == "cuda:2,cuda:0");
  CHECK(named.MakeDevice(1)->name() == "cuda:2");
  CHECK(Backend().MakeDevices(1, 2)->size() == 1);
  CHECK(Backend().num_devices() == 1);
}

TEST_CASE("GPUs that nobody uses do not stay open") {
  const auto last = test::MakeFakeGpu(1, /*ordinal=*/2);
  const test::FakeDriver& fake = test::FakeDriver::Current();
  const size_t before = fake.live();
  const Backend all = *Backend::Open({.kind = Kind::kAuto}, &last->driver());
  CHECK(fake.live() == before + 1);
  {
    const auto two = *all.MakeDevices(1, 2);
    CHECK(fake.live() == before + 2);
  }
  CHECK(fake.live() == before + 1);
}

TEST_CASE("auto leaves out a GPU that cannot be used and says why; cuda is refused") {
  const auto gpu = test::MakeFakeGpu(1, /*ordinal=*/1);
  test::FakeDriver& fake = test::FakeDriver::Current();
  const auto open = [&](Kind kind) {
    fake.FailCall(0, test::kErrorLaunchFailed);  // opens the first GPU
    return Backend::Open({.kind = kind}, &gpu->driver());
  };
  const Backend other = *open(Kind::kAuto);
  CHECK(other.name() == "cuda:1");
  CHECK(other.is_automatic());
  CHECK_THAT(other.problem(), Catch::StartsWith("cuda:0: cuDeviceGet: "));
  CHECK_THAT(std::string(open(Kind::kCuda).status().message()),
             Catch::StartsWith("cuda:0: cuDeviceGet: ") && Catch::EndsWith("or --device=cpu"));
  // One that can be opened at the start and not when a job wants it.
  const Backend both = *Backend::Open({.kind = Kind::kAuto}, &gpu->driver());
  fake.FailCall(0, test::kErrorLaunchFailed);
  CHECK_THAT(std::string(both.MakeDevices(1, 2).status().message()),
             Catch::StartsWith("cuda:1: cuDeviceGet: "));
}

TEST_CASE("a GPU that others hold is refused with the remedy, and may be free later") {
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver& fake = test::FakeDriver::Current();
  const auto refused = [&](int64_t call, cuda::CUresult result, absl::string_view name) {
    fake.FailCall(call, result);
    const absl::Status status = Backend::Open({.kind = Kind::kCuda}, &gpu->driver()).status();
    CHECK(fake.failed_call() == name);
    CHECK(ExitCodeFor(status) == ExitCode::kPeersLost);
    CHECK_THAT(std::string(status.message()),
               Catch::StartsWith("cuda:0: " + std::string(name) + ": CUDA_ERROR") &&
                   Catch::EndsWith("; or --device=cpu"));
    return std::string(status.message());
  };
  constexpr char kContext[] = "cuDevicePrimaryCtxRetain";
  constexpr int64_t kContextCall = 2;  // after cuDeviceGet and cuDeviceTotalMem
  CHECK_THAT(refused(kContextCall, cuda::kErrorOutOfMemory, kContext),
             Catch::Contains(": too few of its 1073741824 bytes are free. Remedy: end other "
                             "processes on this GPU, which nvidia-smi lists"));
  CHECK_THAT(refused(kContextCall, cuda::kErrorDeviceUnavailable, kContext),
             Catch::Contains(". Remedy: give each worker a GPU of its own"));
  CHECK_THAT(refused(kContextCall, cuda::kErrorSystemNotReady, kContext),
             Catch::Contains(". Remedy: start NVIDIA's Fabric Manager"));
  CHECK_THAT(refused(kContextCall, cuda::kErrorMpsMaxConnectionsReached, kContext),
             Catch::Contains(". Remedy: see the log of the Multi-Process Service"));
  // And twice cuCtxSetCurrent.
  CHECK_THAT(refused(kContextCall + 3, cuda::kErrorOutOfMemory, "cuModuleLoadData"),
             Catch::Contains(": 1073741824 of its 1073741824 bytes are free. Remedy: end other "));
}

TEST_CASE("a GPU that fails at the start is no matter of configuration") {
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver& fake = test::FakeDriver::Current();
  for (const int64_t call : {2, 5}) {  // cuDevicePrimaryCtxRetain, cuModuleLoadData
    fake.FailCall(call, test::kErrorLaunchFailed);
    CHECK(ExitCodeFor(Backend::Open({.kind = Kind::kCuda}, &gpu->driver()).status()) ==
          ExitCode::kDeviceFailed);
  }
}

TEST_CASE("a GPU that works, and that a library refuses, is refused for good with the remedy") {
  const auto gpu = test::MakeFakeGpu(1);
  const auto open = [&] { return Backend::Open({.kind = Kind::kCuda}, &gpu->driver()).status(); };
  test::FakeCudnn& cudnn = test::FakeCudnn::Current();
  cudnn.FailCall(0);
  const absl::Status refused = open();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()),
             Catch::StartsWith("cuda:0: cudnnCreate: CUDNN_STATUS_FAKE (why): 1073741824 of its "
                               "1073741824 bytes are free. Remedy: ") &&
                 Catch::Contains("install all libraries of one cuDNN") &&
                 Catch::EndsWith("; or --device=cpu"));
  CHECK(open().ok());

  cuda::CublasLtFunctions functions = *test::FakeCublasLt().operator->().operator->();
  functions.Create = [](cuda::CublasLtContext**) { return test::kCublasInvalidValue; };
  const cuda::CublasLtLibrary cublas(functions);
  cuda::SetCublasLtForTesting(&cublas);
  const absl::Status no_cublas = open();
  cuda::SetCublasLtForTesting(&test::FakeCublasLt());
  CHECK(ExitCodeFor(no_cublas) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(no_cublas.message()),
             Catch::StartsWith("cuda:0: cublasLtCreate: ") && Catch::Contains("install cuBLAS"));
}

TEST_CASE("a library that a job's op asks for, and that refuses, does not end the job") {
  const auto gpu = test::MakeFakeGpu(1, /*ordinal=*/1);
  test::FakeCudnn::Current().FailCall(0);
  const absl::Status late =
      cuda::CudnnHandle::Create(gpu.get(), &test::FakeCudnn::library()).status();
  CHECK(ExitCodeFor(late) == ExitCode::kDeviceFailed);
  CHECK_THAT(std::string(late.message()), Catch::Contains("Remedy: "));
  // Nor does a GPU that is opened for it.
  test::FakeDriver& fake = test::FakeDriver::Current();
  const Backend both = *Backend::Open({.kind = Kind::kCuda}, &gpu->driver());
  fake.FailCall(2, cuda::kErrorOutOfMemory);
  const absl::Status full = both.MakeDevices(1, 2).status();
  CHECK(fake.failed_call() == "cuDevicePrimaryCtxRetain");
  CHECK(ExitCodeFor(full) == ExitCode::kDeviceFailed);
  CHECK_THAT(std::string(full.message()), Catch::Contains("Remedy: "));
}

TEST_CASE("a GPU that is not there is refused with the number of those that are") {
  const auto gpu = test::MakeFakeGpu(1);
  const absl::Status refused =
      Backend::Open({.kind = Kind::kCuda, .ordinals = {7}}, &gpu->driver()).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()),
             Catch::StartsWith("--device=cuda:7: this process sees ") &&
                 Catch::Contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("whichever call of the driver fails, a GPU is refused or auto takes the CPU") {
  const auto gpu = test::MakeFakeGpu(1);
  test::FakeDriver& fake = test::FakeDriver::Current();
  const int64_t before = fake.calls();
  REQUIRE(Backend::Open({.kind = Kind::kCuda}, &gpu->driver()).ok());
  const int64_t calls = fake.calls() - before;
  const cuda::CUresult result =
      GENERATE(test::kErrorLaunchFailed, cuda::kErrorOutOfMemory, cuda::kErrorDeviceUnavailable);
  int64_t refused = 0;
  for (int64_t n = 0; n < calls; ++n) {
    CAPTURE(result, n);
    fake.FailCall(n, result);
    const auto chosen = Backend::Open({.kind = Kind::kCuda}, &gpu->driver());
    refused += !chosen.ok();
    if (!chosen.ok()) {
      CHECK_THAT(std::string(chosen.status().message()), Catch::Contains(fake.failed_call()));
      const ExitCode code = ExitCodeFor(chosen.status());
      CHECK((code == ExitCode::kPeersLost || code == ExitCode::kDeviceFailed));
      // A GPU without memory may have some later.
      if (result == cuda::kErrorOutOfMemory) CHECK(code == ExitCode::kPeersLost);
    }
    fake.FailCall(n, result);
    CHECK(Backend::Open({.kind = Kind::kAuto}, &gpu->driver()).ok());
  }
  CHECK(refused > 0);
}

}  // namespace
}  // namespace lockstep::worker
