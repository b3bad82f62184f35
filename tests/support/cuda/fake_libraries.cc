// CUDA's driver, cuBLASLt, cuDNN and NCCL as one library under their names, for programs under
// test: what the fakes of this folder do, on a device that ends with the process. Memory and work
// are the host's.
//
// LOCKSTEP_FAILING_CUDA_CALL: the number of the driver's call, from 0, that fails.
// LOCKSTEP_FAILING_CUDA_RESULT: what it returns; CUDA_ERROR_LAUNCH_FAILED where it is not set.
// LOCKSTEP_IMITATED_GPUS: how many there are; 1 where it is not set.
#include <cstdlib>
#include <optional>

#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_driver.h"
#include "tests/support/cuda/fake_nccl.h"
#include "worker/device/cuda/driver_api.h"

using namespace lockstep::worker::cuda;  // the names of the interfaces

// A symbol that jumps to where its pointer points: so no parameter is written twice.
#define LOCKSTEP_EXPORT(symbol)                \
  extern "C" void* lockstep_address_##symbol;  \
  void* lockstep_address_##symbol = nullptr;   \
  asm(".text\n"                                \
      ".globl " #symbol                        \
      "\n"                                     \
      ".type " #symbol ", @function\n" #symbol \
      ":\n"                                    \
      "  movq lockstep_address_" #symbol       \
      "@GOTPCREL(%rip), %rax\n"                \
      "  jmp *(%rax)\n");
#define LOCKSTEP_EXPORT_DRIVER(name, symbol, parameters) LOCKSTEP_EXPORT(symbol)
#define LOCKSTEP_EXPORT_LIBRARY(name, result, symbol, parameters) LOCKSTEP_EXPORT(symbol)
LOCKSTEP_CUDA_DRIVER_FUNCTIONS(LOCKSTEP_EXPORT_DRIVER)
LOCKSTEP_CUBLAS_LT_FUNCTIONS(LOCKSTEP_EXPORT_LIBRARY)
LOCKSTEP_CUDNN_FUNCTIONS(LOCKSTEP_EXPORT_LIBRARY)
LOCKSTEP_NCCL_FUNCTIONS(LOCKSTEP_EXPORT_LIBRARY)

namespace lockstep::test {
namespace {

void FillAddresses() {
#define LOCKSTEP_FILL_DRIVER(name, symbol, parameters) \
  lockstep_address_##symbol = reinterpret_cast<void*>(FakeDriver::functions().name);
#define LOCKSTEP_FILL_CUBLAS(name, result, symbol, parameters) \
  lockstep_address_##symbol = reinterpret_cast<void*>(FakeCublasLt()->name);
#define LOCKSTEP_FILL_CUDNN(name, result, symbol, parameters) \
  lockstep_address_##symbol = reinterpret_cast<void*>(FakeCudnn::library()->name);
#define LOCKSTEP_FILL_NCCL(name, result, symbol, parameters) \
  lockstep_address_##symbol = reinterpret_cast<void*>(FakeNccl::Functions().name);
  LOCKSTEP_CUDA_DRIVER_FUNCTIONS(LOCKSTEP_FILL_DRIVER)
  LOCKSTEP_CUBLAS_LT_FUNCTIONS(LOCKSTEP_FILL_CUBLAS)
  LOCKSTEP_CUDNN_FUNCTIONS(LOCKSTEP_FILL_CUDNN)
  LOCKSTEP_NCCL_FUNCTIONS(LOCKSTEP_FILL_NCCL)
}

std::optional<int64_t> NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int64_t number = 0;
  LOCKSTEP_CHECK(absl::SimpleAtoi(text, &number));
  return number;
}

// When the library is opened. Lives as long as the process: threads may use it to the end.
const bool kIsOpened = [] {
  FillAddresses();
  auto* const driver = new FakeDriver(/*seed=*/1);
  new FakeCudnn({FakeEngine{.index = 57, .workspace = 64}, FakeEngine{.index = 3}});
  new FakeNccl;
  driver->SetDeviceCount(static_cast<int>(NumberIn("LOCKSTEP_IMITATED_GPUS").value_or(1)));
  if (const auto failing = NumberIn("LOCKSTEP_FAILING_CUDA_CALL"); failing.has_value()) {
    driver->FailCall(*failing,
                     static_cast<CUresult>(
                         NumberIn("LOCKSTEP_FAILING_CUDA_RESULT").value_or(kErrorLaunchFailed)));
  }
  return true;
}();

}  // namespace
}  // namespace lockstep::test
