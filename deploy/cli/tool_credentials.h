// What commands show of themselves to the processes of a job. Defines the flags --token_file,
// --tls_ca, --tls_cert and --tls_key.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/credentials.h"
#include "common/security/caller.h"

namespace lockstep::deploy {

// The flags above, which take a value (bare_word_command.h), with those of the command itself.
std::vector<std::string> WithCredentialFlags(std::vector<std::string> flags);

// For calls to `address`, in `role` where the flags name the job's token; null without these flags.
// INVALID_ARGUMENT: a token without TLS, and an address on another machine. Errors of
// MakeToolCredentials and MakeTlsToolCredentials.
absl::StatusOr<std::shared_ptr<const rpc::Credentials>> LoadToolCredentials(
    const std::string& address, security::CallerRole role);

}  // namespace lockstep::deploy
