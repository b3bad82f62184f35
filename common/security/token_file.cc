#include "common/security/token_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/security/secret_file.h"

namespace lockstep::security {
namespace {

constexpr size_t kMostBytes = 1024;
// Credentials that a file may hold in place of the token.
constexpr absl::string_view kOfReader = "reader:";
constexpr absl::string_view kOfOperator = "operator:";

}  // namespace

absl::StatusOr<JobToken> ReadJobToken(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadSecret(path, kMostBytes));
  absl::StatusOr<JobToken> token = JobToken::Parse(text);
  if (!token.ok()) return Annotate(token.status(), path);
  return token;
}

absl::StatusOr<std::string> ReadCredential(const std::string& path, const Caller& caller) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadSecret(path, kMostBytes));
  const absl::string_view line = absl::StripAsciiWhitespace(text);
  if (absl::StartsWith(line, kOfReader) || absl::StartsWith(line, kOfOperator)) {
    return std::string(line);
  }
  const absl::StatusOr<JobToken> token = JobToken::Parse(line);
  if (!token.ok()) return Annotate(token.status(), path);
  return token->CredentialFor(caller);
}

}  // namespace lockstep::security
