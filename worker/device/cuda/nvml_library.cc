#include "worker/device/cuda/nvml_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/device/cuda/shared_library.h"

namespace lockstep::worker::cuda {

absl::StatusOr<NvmlLibrary> NvmlLibrary::Open(const std::string& library) {
  LOCKSTEP_ASSIGN_OR_RETURN(const SharedLibrary opened, SharedLibrary::Open(library));
  NvmlFunctions functions;
#define LOCKSTEP_FIND_FUNCTION(name, result, symbol, parameters)                     \
  if (!opened.Find(#symbol, &functions.name)) {                                      \
    return absl::FailedPreconditionError(absl::StrCat(library, " has no " #symbol)); \
  }
  LOCKSTEP_NVML_FUNCTIONS(LOCKSTEP_FIND_FUNCTION)
#undef LOCKSTEP_FIND_FUNCTION
  return Create(functions);
}

absl::StatusOr<NvmlLibrary> NvmlLibrary::Create(const NvmlFunctions& functions) {
  const NvmlLibrary library(functions);
  LOCKSTEP_RETURN_IF_ERROR(library.ToStatus(functions.Init(), "nvmlInit"));
  return library;
}

absl::Status NvmlLibrary::ToStatus(NvmlResult result, absl::string_view call) const {
  if (result == kNvmlSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", functions_.ErrorString(result)));
}

absl::StatusOr<const NvmlLibrary*> SharedNvml() {
  static const auto* const library =
      new absl::StatusOr<NvmlLibrary>(NvmlLibrary::Open(NvmlLibrary::kLibrary));
  if (!library->ok()) return library->status();
  return &**library;
}

}  // namespace lockstep::worker::cuda
