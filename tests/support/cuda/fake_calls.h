// FakeCalls is the common base of the fake driver's functions.
#pragma once

#include "absl/synchronization/mutex.h"
#include "tests/support/cuda/fake_driver.h"

namespace lockstep::test {

struct FakeCalls {
  using CUresult = worker::cuda::CUresult;

  // Returns the only fake driver.
  static FakeDriver& Driver();
  // Of this thread.
  static worker::cuda::CUcontext& CurrentContext();

  // Makes the call named `call`: returns its error, or the result of `body`, under the lock.
  template <typename Body>
  static CUresult Call(const char* call, const Body& body) {
    FakeDriver& driver = Driver();
    absl::MutexLock lock(&driver.mutex_);
    const CUresult result = driver.Enter(call);
    return result == worker::cuda::kSuccess ? body(driver) : result;
  }
  // The same for a call that frees: it frees also where it returns an error.
  template <typename Body>
  static CUresult Free(const char* call, const Body& body) {
    FakeDriver& driver = Driver();
    absl::MutexLock lock(&driver.mutex_);
    const CUresult result = driver.Enter(call);
    const CUresult freed = body(driver);
    return result == worker::cuda::kSuccess ? freed : result;
  }
  // And for one that can be called without a context.
  template <typename Body>
  static CUresult CallAnywhere(const char* call, const Body& body) {
    FakeDriver& driver = Driver();
    absl::MutexLock lock(&driver.mutex_);
    const CUresult result = driver.Enter(call, /*needs_context=*/false);
    return result == worker::cuda::kSuccess ? body(driver) : result;
  }
};

// The driver's functions, by subject.
struct FakeDeviceCalls : FakeCalls {
  static void AddTo(worker::cuda::DriverFunctions* functions);
};
struct FakeMemoryCalls : FakeCalls {
  static void AddTo(worker::cuda::DriverFunctions* functions);
};
struct FakeStreamCalls : FakeCalls {
  static void AddTo(worker::cuda::DriverFunctions* functions);
};
struct FakeGraphCalls : FakeCalls {
  static void AddTo(worker::cuda::DriverFunctions* functions);
};

}  // namespace lockstep::test
