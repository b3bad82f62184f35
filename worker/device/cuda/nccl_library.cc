#include "worker/device/cuda/nccl_library.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/device/cuda/shared_library.h"

namespace lockstep::worker::cuda {
namespace {

constexpr char kRemedy[] = ". Remedy: install NCCL 2.13 or later";

const absl::StatusOr<const NcclLibrary*>* library_for_testing = nullptr;

}  // namespace

absl::StatusOr<NcclLibrary> NcclLibrary::Open(const std::string& library) {
  const absl::StatusOr<SharedLibrary> opened = SharedLibrary::Open(library);
  if (!opened.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no NCCL: ", opened.status().message(), kRemedy));
  }
  NcclFunctions functions;
#define LOCKSTEP_FIND_FUNCTION(name, result, symbol, parameters)                  \
  if (!opened->Find(#symbol, &functions.name)) {                                  \
    return absl::FailedPreconditionError(                                         \
        absl::StrCat("NCCL is too old: ", library, " has no " #symbol, kRemedy)); \
  }
  LOCKSTEP_NCCL_FUNCTIONS(LOCKSTEP_FIND_FUNCTION)
#undef LOCKSTEP_FIND_FUNCTION
  return Create(functions);
}

absl::StatusOr<NcclLibrary> NcclLibrary::Create(const NcclFunctions& functions) {
  NcclLibrary library(functions);
  const absl::Status status =
      library.ToStatus(functions.GetVersion(&library.version_), "ncclGetVersion");
  if (!status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(status.message(), kRemedy));
  }
  return library;
}

absl::Status NcclLibrary::ToStatus(NcclResult result, absl::string_view call) const {
  if (result == kNcclSuccess) return absl::OkStatus();
  std::string message = absl::StrCat(call, ": ", functions_.GetErrorString(result));
  const char* const more = functions_.GetLastError(nullptr);
  if (more != nullptr && more[0] != '\0') absl::StrAppend(&message, ": ", more);
  return absl::InternalError(message);
}

std::string NcclLibrary::version() const {
  return absl::StrCat(version_ / 10000, ".", version_ / 100 % 100, ".", version_ % 100);
}

absl::StatusOr<const NcclLibrary*> SharedNccl() {
  if (library_for_testing != nullptr) return *library_for_testing;
  static const auto* const library =
      new absl::StatusOr<NcclLibrary>(NcclLibrary::Open(NcclLibrary::kLibrary));
  if (!library->ok()) return library->status();
  return &**library;
}

void SetNcclForTesting(const absl::StatusOr<const NcclLibrary*>* library) {
  library_for_testing = library;
}

}  // namespace lockstep::worker::cuda
