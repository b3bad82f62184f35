#include "tests/support/test_device.h"

#include <cstdlib>
#include <string>
#include <utility>

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
constexpr char kBfloat16[] = "gpu_bf16";
constexpr char kFakeBfloat16[] = "cuda_bf16";

bool IsFake(const std::string& kind) { return kind == "cuda" || kind == kFakeBfloat16; }
bool IsBfloat16(const std::string& kind) { return kind == kBfloat16 || kind == kFakeBfloat16; }

std::string Kind() {
  const char* const asked = std::getenv(kTestDeviceVariable);
  return asked == nullptr ? "cpu" : asked;
}

// This machine's; where there is one, as if it were several. Never destroyed: making a GPU's
// context anew takes a tenth of a second. value() throws, so a test without a GPU fails with the
// remedy.
const worker::Backend& Gpus() {
  static const auto* const gpus = new worker::Backend(
      worker::Backend::Open({.kind = worker::DeviceChoice::Kind::kCuda, .ordinals = {0, 0, 0}},
                            worker::cuda::SharedDriver())
          .value());
  return *gpus;
}

}  // namespace

std::shared_ptr<worker::Device> MakeTestDevice(int threads, uint64_t seed) {
  const std::string kind = Kind();
  if (kind == "cpu") return std::make_shared<worker::CpuDevice>(threads);
  if (kind == "deferred") return std::make_shared<DeferredDevice>(threads, seed);
  if (IsFake(kind)) return MakeFakeGpu(seed);
  LOCKSTEP_CHECK(kind == "gpu" || kind == kTf32 || kind == kBfloat16);
  return Gpus().MakeDevice(threads);
}

std::vector<std::shared_ptr<worker::Device>> MakeTestDevices(int count, uint64_t seed) {
  const std::string kind = Kind();
  if (kind != "cpu" && kind != "deferred" && !IsFake(kind)) {
    return Gpus().MakeDevices(/*threads=*/1, static_cast<size_t>(count)).value();
  }
  std::vector<std::shared_ptr<worker::Device>> devices = {MakeTestDevice(/*threads=*/1, seed)};
  if (kind == "cpu") return devices;
  for (int ordinal = 1; ordinal < count; ++ordinal) {
    if (IsFake(kind)) {
      devices.push_back(MakeFakeGpu(seed, ordinal));
      continue;
    }
    auto* const first = static_cast<DeferredDevice*>(devices.front().get());
    devices.emplace_back(first->MakePeer().release(),
                         [keep = devices.front()](worker::Device* peer) { delete peer; });
  }
  return devices;
}

worker::TowerDevices TowersOn(const std::vector<std::shared_ptr<worker::Device>>& devices) {
  std::vector<worker::Device*> all;
  for (const std::shared_ptr<worker::Device>& device : devices) all.push_back(device.get());
  return worker::TowerDevices(std::move(all));
}

const worker::OpTable& OpsOfTestDevice() {
  const std::string kind = Kind();
  if (kind == kTf32) return worker::cuda::Ops(worker::Precision::kTf32);
  if (IsBfloat16(kind)) return worker::cuda::Ops(worker::Precision::kBfloat16);
  return kind == "cuda" || kind == "gpu" ? worker::cuda::Ops() : worker::cpu::Ops();
}

double ToleranceOfTestDevice() {
  const std::string kind = Kind();
  if (IsBfloat16(kind)) return 5e-3;
  return kind == kTf32 ? 2e-3 : 1e-5;
}

}  // namespace lockstep::test
