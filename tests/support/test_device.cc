#include "tests/support/test_device.h"

#include <cstdlib>
#include <string>

#include "common/base/check.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/deferred_device.h"
#include "worker/backend/backend.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cuda/driver.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::test {
namespace {

constexpr char kTf32[] = "gpu_tf32";

std::string Kind() {
  const char* const asked = std::getenv(kTestDeviceVariable);
  return asked == nullptr ? "cpu" : asked;
}

}  // namespace

std::shared_ptr<worker::Device> MakeTestDevice(int threads, uint64_t seed) {
  const std::string kind = Kind();
  if (kind == "cpu") return std::make_shared<worker::CpuDevice>(threads);
  if (kind == "deferred") return std::make_shared<DeferredDevice>(threads, seed);
  if (kind == "cuda") return MakeFakeGpu(seed);
  LOCKSTEP_CHECK(kind == "gpu" || kind == kTf32);
  // Never destroyed: making the GPU's context anew takes a tenth of a second. value() throws, so a
  // test without a GPU fails with the remedy.
  static const auto* const gpu =
      new worker::Backend(worker::Backend::Open({.kind = worker::DeviceChoice::Kind::kCuda},
                                                worker::cuda::SharedDriver())
                              .value());
  return gpu->MakeDevice(threads);
}

const worker::OpTable& OpsOfTestDevice() {
  const std::string kind = Kind();
  if (kind == kTf32) return worker::cuda::Ops(worker::Precision::kTf32);
  return kind == "cuda" || kind == "gpu" ? worker::cuda::Ops() : worker::cpu::Ops();
}

double ToleranceOfTestDevice() { return Kind() == kTf32 ? 2e-3 : 1e-5; }

}  // namespace lockstep::test
