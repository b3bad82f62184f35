#include "deploy/cli/tool_credentials.h"

#include "absl/flags/flag.h"
#include "common/base/status_macros.h"
#include "common/rpc/tls_credentials.h"

ABSL_FLAG(
    std::string, token_file, "",
    "file with the token of the job, or a credential of a reader or an operator; `lockstep up` "
    "prints its name");
ABSL_FLAG(std::string, tls_ca, "",
          "PEM file with the authorities that sign the job's certificates, where it has TLS");
ABSL_FLAG(
    std::string, tls_cert, "",
    "PEM file with a certificate of the job, of a reader or an operator for example, where the "
    "job has no token");
ABSL_FLAG(std::string, tls_key, "", "PEM file with the key of --tls_cert; default: the same file");

namespace lockstep::deploy {

std::vector<std::string> WithCredentialFlags(std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--token_file", "--tls_ca", "--tls_cert", "--tls_key"});
  return flags;
}

absl::StatusOr<std::shared_ptr<const rpc::Credentials>> LoadToolCredentials(
    const std::string& address, security::CallerRole role) {
  const std::string token_file = absl::GetFlag(FLAGS_token_file);
  const security::TlsFiles files{.certificate = absl::GetFlag(FLAGS_tls_cert),
                                 .key = absl::GetFlag(FLAGS_tls_key),
                                 .authorities = absl::GetFlag(FLAGS_tls_ca)};
  if (!files.empty())
    return rpc::MakeTlsToolCredentials({.files = files, .token_file = token_file}, role);
  if (token_file.empty()) return nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<const rpc::Credentials> credentials,
                            rpc::MakeToolCredentials(token_file, role));
  LOCKSTEP_RETURN_IF_ERROR(credentials->CheckAddress(address));
  return credentials;
}

}  // namespace lockstep::deploy
