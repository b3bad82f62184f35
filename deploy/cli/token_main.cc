// lockstep token: makes the secret of a job, and what lets somebody read its state.
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/security/secret_file.h"
#include "common/security/token_file.h"
#include "deploy/cli/bare_word.h"
#include "deploy/cli/finish_command.h"

ABSL_FLAG(std::string, file, "", "the file to make; may be given without the flag's name");
ABSL_FLAG(std::string, of, "",
          "file with the token of a job: the new file lets its owner ask for the state of that "
          "job's processes, and for nothing else");

namespace lockstep::deploy {
namespace {

constexpr char kUsage[] =
    "lockstep token FILE [--of=TOKEN_FILE]\n"
    "\n"
    "Makes a token for the --token_file of every process of a job, in a new file that only you "
    "may\n"
    "read. docs/security.md says what it protects.\n";

absl::StatusOr<int> Make() {
  const std::string file = absl::GetFlag(FLAGS_file);
  if (file.empty()) {
    return UsageError("no file is named. Remedy: ./lockstep token FILE, the file to make");
  }
  const std::string of = absl::GetFlag(FLAGS_of);
  if (of.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(security::WriteSecret(file, security::JobToken::NewText()));
    return 0;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const security::JobToken token, security::ReadJobToken(of));
  const std::string reader = token.CredentialFor({.role = security::CallerRole::kReader});
  LOCKSTEP_RETURN_IF_ERROR(security::WriteSecret(file, absl::StrCat(reader, "\n")));
  return 0;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  lockstep::OpenStandardStreams();
  using lockstep::deploy::NameBareWord;
  const std::vector<std::string> words = NameBareWord({"--file", "--of"}, argc, argv);
  const std::vector<const char*> arguments = lockstep::deploy::PointersTo(words);
  if (const auto flags =
          lockstep::HandleFlags("lockstep token", lockstep::deploy::kUsage,
                                static_cast<int>(arguments.size()), arguments.data());
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  return lockstep::deploy::FinishCommand("lockstep token", lockstep::deploy::Make());
}
