#include "worker/ops/cuda/cublas/cublas_lt_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "worker/device/cuda/driver.h"
#include "worker/device/cuda/shared_library.h"

namespace lockstep::worker::cuda {
namespace {

const CublasLtLibrary* library_for_testing = nullptr;

}  // namespace

absl::StatusOr<CublasLtLibrary> CublasLtLibrary::Open(const std::string& library) {
  constexpr char kRemedy[] = ". Remedy: install cuBLAS of CUDA ";
  const absl::StatusOr<SharedLibrary> opened = SharedLibrary::Open(library);
  if (!opened.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("no cuBLASLt: ", opened.status().message(),
                                                      kRemedy, VersionText(ToolkitVersion())));
  }
  CublasLtFunctions functions;
#define LOCKSTEP_FIND_FUNCTION(name, result, symbol, parameters)                        \
  if (!opened->Find(#symbol, &functions.name)) {                                        \
    return absl::FailedPreconditionError(absl::StrCat("cuBLASLt is too old: ", library, \
                                                      " has no " #symbol, kRemedy,      \
                                                      VersionText(ToolkitVersion())));  \
  }
  LOCKSTEP_CUBLAS_LT_FUNCTIONS(LOCKSTEP_FIND_FUNCTION)
#undef LOCKSTEP_FIND_FUNCTION
  return CublasLtLibrary(functions);
}

absl::Status CublasLtLibrary::ToStatus(CublasStatus status, absl::string_view call) const {
  if (status == kCublasSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat(call, ": ", functions_.GetStatusName(status));
  if (status == kCublasNotSupported) return absl::UnimplementedError(message);
  return WithExitCode(absl::InternalError(message), ExitCode::kDeviceFailed);
}

absl::StatusOr<const CublasLtLibrary*> SharedCublasLt() {
  if (library_for_testing != nullptr) return library_for_testing;
  static const auto* const library = new absl::StatusOr<CublasLtLibrary>(
      CublasLtLibrary::Open(absl::StrCat("libcublasLt.so.", ToolkitVersion() / 1000)));
  if (!library->ok()) return library->status();
  return &**library;
}

void SetCublasLtForTesting(const CublasLtLibrary* library) { library_for_testing = library; }

}  // namespace lockstep::worker::cuda
