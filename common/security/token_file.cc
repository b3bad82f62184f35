#include "common/security/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/fs/file_descriptor.h"
#include "common/fs/fs_error.h"
#include "common/fs/input_file.h"

namespace lockstep::security {
namespace {

constexpr size_t kMostBytes = 1024;
constexpr absl::string_view kReader = "reader:";

// A Secret that Kubernetes mounts belongs to root and a group: there its group may read.
constexpr mode_t kForbidden = S_IWGRP | S_IRWXO;

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ReadError(path, "open the token file", errno);
  const bool is_ours = info.st_uid == ::geteuid();
  const mode_t forbidden = is_ours ? (S_IRWXG | S_IRWXO) : kForbidden;
  if ((info.st_mode & forbidden) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": other users may use this token: its mode is ",
                     absl::StrFormat("%04o", info.st_mode & 07777), ". Remedy: chmod 600 ", path));
  }
  return ReadFile(path, kMostBytes);
}

}  // namespace

absl::StatusOr<JobToken> ReadJobToken(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadSecret(path));
  absl::StatusOr<JobToken> token = JobToken::Parse(text);
  if (!token.ok()) return Annotate(token.status(), path);
  return token;
}

absl::StatusOr<std::string> ReadCredential(const std::string& path, const Caller& caller) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadSecret(path));
  const absl::string_view line = absl::StripAsciiWhitespace(text);
  if (absl::StartsWith(line, kReader)) return std::string(line);
  const absl::StatusOr<JobToken> token = JobToken::Parse(line);
  if (!token.ok()) return Annotate(token.status(), path);
  return token->CredentialFor(caller);
}

absl::Status WriteSecret(const std::string& path, absl::string_view text) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return WriteError(path, "make the token file", errno);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return WriteError(path, "write the token file", errno);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::security
