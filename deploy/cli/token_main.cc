// lockstep token: makes the secret of a job, and credentials for those who read its state or end
// it.
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/security/secret_file.h"
#include "common/security/token_file.h"
#include "deploy/cli/bare_word_command.h"

ABSL_FLAG(std::string, file, "", "the file to make; may be given without the flag's name");
ABSL_FLAG(std::string, of, "",
          "file with the token of a job: the new file holds a credential for that job, not its "
          "token");
ABSL_FLAG(std::string, role, "",
          "with --of: reader may ask for the state of the job's processes, and nothing else; "
          "operator may also end the job; default: reader");

namespace lockstep::deploy {
namespace {

constexpr char kUsage[] =
    "lockstep token FILE [--of=TOKEN_FILE [--role=reader|operator]]\n"
    "\n"
    "Makes a token for the --token_file of every process of a job, in a new file that only you "
    "may\n"
    "read. docs/security.md says what it protects.\n";

// Of those who are no process of the job.
absl::StatusOr<security::Caller> CallerOfFlag() {
  const std::string role = absl::GetFlag(FLAGS_role);
  if (role.empty() || role == "reader") return security::Caller{security::CallerRole::kReader};
  if (role == "operator") return security::Caller{security::CallerRole::kOperator};
  return UsageError(absl::StrCat("--role: expected reader or operator, got \"", role,
                                 "\". Remedy: --role=operator may end the job"));
}

absl::StatusOr<int> Make() {
  const std::string file = absl::GetFlag(FLAGS_file);
  if (file.empty()) {
    return UsageError("no file is named. Remedy: ./lockstep token FILE, the file to make");
  }
  const std::string of = absl::GetFlag(FLAGS_of);
  LOCKSTEP_ASSIGN_OR_RETURN(const security::Caller caller, CallerOfFlag());
  if (of.empty() && !absl::GetFlag(FLAGS_role).empty()) {
    return UsageError("--role: the token itself is for every role. Remedy: --of=TOKEN_FILE");
  }
  if (of.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(security::WriteSecret(file, security::JobToken::NewText()));
    return 0;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const security::JobToken token, security::ReadJobToken(of));
  LOCKSTEP_RETURN_IF_ERROR(
      security::WriteSecret(file, absl::StrCat(token.CredentialFor(caller), "\n")));
  return 0;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  using namespace lockstep::deploy;
  return RunCommand({"lockstep token", kUsage, {"--file", "--of", "--role"}}, argc, argv, Make);
}
