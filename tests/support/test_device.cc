#include "tests/support/test_device.h"

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/deferred_device.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::test {
namespace {

bool IsKind(absl::string_view kind) {
  const char* const asked = std::getenv(kTestDeviceVariable);
  return asked != nullptr && asked == kind;
}

}  // namespace

bool IsDeferred() { return IsKind("deferred"); }

bool IsCuda() { return IsKind("cuda"); }

std::shared_ptr<worker::Device> MakeTestDevice(int threads) {
  if (IsCuda()) return MakeFakeGpu(/*seed=*/1);
  if (IsDeferred()) return std::make_shared<DeferredDevice>(threads, /*seed=*/1);
  return std::make_shared<worker::CpuDevice>(threads);
}

const worker::OpTable& OpsOfTestDevice() {
  return IsCuda() ? worker::cuda::Ops() : worker::cpu::Ops();
}

}  // namespace lockstep::test
