#include "worker/ops/cuda/cudnn/cudnn_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "worker/device/cuda/shared_library.h"

namespace lockstep::worker::cuda {
namespace {

const CudnnLibrary* library_for_testing = nullptr;

constexpr size_t kOldestVersion = 90800;  // 10,000 of the major version, 100 of the minor one
constexpr char kRemedy[] = ". Remedy: install cuDNN 9.8 or later (nvidia-cudnn-cu13 of PyPI)";

// An engine whose kernel cuDNN cannot compile is one that it does not have: the next one may do.
bool IsNotSupported(CudnnStatus status) {
  return status == kCudnnCompilationFailed ||
         (status >= kCudnnNotSupported && status < kCudnnNotSupported + 1000);
}

}  // namespace

absl::StatusOr<CudnnLibrary> CudnnLibrary::Open(const std::string& library) {
  const absl::StatusOr<SharedLibrary> opened = SharedLibrary::Open(library);
  if (!opened.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no cuDNN: ", opened.status().message(), kRemedy));
  }
  CudnnFunctions functions;
#define LOCKSTEP_FIND_FUNCTION(name, result, symbol, parameters)                   \
  if (!opened->Find(#symbol, &functions.name)) {                                   \
    return absl::FailedPreconditionError(                                          \
        absl::StrCat("cuDNN is too old: ", library, " has no " #symbol, kRemedy)); \
  }
  LOCKSTEP_CUDNN_FUNCTIONS(LOCKSTEP_FIND_FUNCTION)
#undef LOCKSTEP_FIND_FUNCTION
  return Create(functions);
}

absl::StatusOr<CudnnLibrary> CudnnLibrary::Create(const CudnnFunctions& functions) {
  const size_t version = functions.GetVersion();
  if (version < kOldestVersion) {
    return absl::FailedPreconditionError(absl::StrCat("cuDNN is too old: version ", version / 10000,
                                                      ".", version / 100 % 100, ".", version % 100,
                                                      kRemedy));
  }
  return CudnnLibrary(functions);
}

absl::Status CudnnLibrary::ToStatus(CudnnStatus status, absl::string_view call) const {
  if (status == kCudnnSuccess) return absl::OkStatus();
  char text[512] = {};
  functions_.GetLastErrorString(text, sizeof(text));
  const std::string message =
      absl::StrCat(call, ": ", functions_.GetErrorString(status), " (", text, ")");
  if (IsNotSupported(status)) return absl::UnimplementedError(message);
  return WithExitCode(absl::InternalError(message), ExitCode::kDeviceFailed);
}

absl::StatusOr<const CudnnLibrary*> SharedCudnn() {
  if (library_for_testing != nullptr) return library_for_testing;
  static const auto* const library =
      new absl::StatusOr<CudnnLibrary>(CudnnLibrary::Open(CudnnLibrary::kLibrary));
  if (!library->ok()) return library->status();
  return &**library;
}

void SetCudnnForTesting(const CudnnLibrary* library) { library_for_testing = library; }

}  // namespace lockstep::worker::cuda
