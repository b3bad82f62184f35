// A library of NVIDIA's that is opened at run time, so that one program starts with and without it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lockstep::worker::cuda {

// A value; the library stays open for as long as the process lives.
class SharedLibrary {
 public:
  // FAILED_PRECONDITION: why it cannot be opened, in the words of the dynamic linker.
  static absl::StatusOr<SharedLibrary> Open(const std::string& name);

  // Where the function is; false: there is none of that name.
  template <typename Function>
  bool Find(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(Address(symbol));
    return *function != nullptr;
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* Address(const char* symbol) const;

  void* handle_;
};

}  // namespace lockstep::worker::cuda
