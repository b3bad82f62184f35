#include "common/fs/fs_error.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep {
namespace {

absl::StatusCode CodeFor(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EIO:
      return absl::StatusCode::kInternal;
    default:
      break;
  }
  const absl::StatusCode code = absl::ErrnoToStatusCode(error_number);
  switch (code) {
    // Of a stale handle of network storage, say. In calls between processes these say who commands,
    // what has been done already, and what to try again.
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnavailable:
      return absl::StatusCode::kInternal;
    default:
      return code;
  }
}

absl::Status ErrorOn(const std::string& path, absl::string_view action, int error_number,
                     ExitCode usual) {
  absl::Status status(
      CodeFor(error_number),
      absl::StrCat(path, ": cannot ", action, ": ", std::system_category().message(error_number)));
  return WithExitCode(std::move(status), error_number == EIO ? ExitCode::kIoError : usual);
}

}  // namespace

absl::Status ReadError(const std::string& path, absl::string_view action, int error_number) {
  return ErrorOn(path, action, error_number, ExitCode::kInputNotFound);
}

bool IsStorageFailure(const absl::Status& status) {
  // RESOURCE_EXHAUSTED of an input: this process, or the system, is short of descriptors or memory.
  const bool may_pass = absl::IsInternal(status) || absl::IsResourceExhausted(status);
  const ExitCode code = ExitCodeFor(status);
  return may_pass && (code == ExitCode::kIoError || code == ExitCode::kInputNotFound);
}

absl::Status WriteError(const std::string& path, absl::string_view action, int error_number) {
  const bool may_pass = error_number == ENOSPC || error_number == EDQUOT;
  return ErrorOn(path, action, error_number,
                 may_pass ? ExitCode::kPeersLost : ExitCode::kCannotCreate);
}

}  // namespace lockstep
