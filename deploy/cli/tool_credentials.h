// Credentials of commands for calls to the processes of a job. Defines the flags --token_file,
// --tls_ca, --tls_cert and --tls_key.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/credentials.h"
#include "common/security/caller.h"

namespace lockstep::deploy {

// Returns `flags` of the command with the flags above, which take a value (bare_word_command.h).
std::vector<std::string> WithCredentialFlags(std::vector<std::string> flags);

// Loads credentials for calls to `address`, in `role` if the flags name the job's token; null
// without these flags. INVALID_ARGUMENT: a token without TLS for an address on another machine.
// Errors of MakeToolCredentials and MakeTlsToolCredentials.
absl::StatusOr<std::shared_ptr<const rpc::Credentials>> LoadToolCredentials(
    const std::string& address, security::CallerRole role);

}  // namespace lockstep::deploy
