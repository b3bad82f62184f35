#include "common/base/exit_code.h"

#include <cstdio>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr char kPayloadUrl[] = "lockstep/exit_code";

}  // namespace

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  status.SetPayload(kPayloadUrl, absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

ExitCode ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return ExitCode::kDone;
  if (const auto payload = status.GetPayload(kPayloadUrl)) {
    int code = 0;
    if (absl::SimpleAtoi(std::string(*payload), &code)) return static_cast<ExitCode>(code);
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kBadConfiguration;
    case absl::StatusCode::kNotFound:
      return ExitCode::kInputNotFound;
    case absl::StatusCode::kDataLoss:
      return ExitCode::kCorruptInput;
    case absl::StatusCode::kAborted:
      return ExitCode::kFenced;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kPeersLost;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kNotPermitted;
    case absl::StatusCode::kCancelled:
      return ExitCode::kTerminated;
    default:
      return ExitCode::kBug;
  }
}

absl::Status UsageError(absl::string_view message) {
  return WithExitCode(absl::InvalidArgumentError(message), ExitCode::kUsage);
}

int PrintFailure(absl::string_view program, const absl::Status& status) {
  if (!status.ok()) {
    const std::string line = absl::StrCat(program, ": ", status.message(), "\n");
    std::fputs(line.c_str(), stderr);
  }
  return static_cast<int>(ExitCodeFor(status));
}

}  // namespace lockstep
