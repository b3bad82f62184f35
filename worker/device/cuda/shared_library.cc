#include "worker/device/cuda/shared_library.h"

#include <dlfcn.h>

namespace lockstep::worker::cuda {

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const std::string& name) {
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::FailedPreconditionError(dlerror());
  return SharedLibrary(handle);
}

void* SharedLibrary::Address(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace lockstep::worker::cuda
