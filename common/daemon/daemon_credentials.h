// What ps, worker and chief show of themselves and ask of their callers, from the flags that they
// share: --token_file, --tls_cert, --tls_key and --tls_ca.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/task.h"
#include "common/rpc/credentials.h"

namespace lockstep {

// Null without these flags: the log then warns that everybody who reaches `listening` is served.
// INVALID_ARGUMENT: a token, and an address of the cluster that is not loopback, without TLS.
// Errors of MakeTokenCredentials and MakeTlsCredentials.
absl::StatusOr<std::shared_ptr<const rpc::Credentials>> LoadCredentials(
    const TaskConfig& task, const std::string& listening);

}  // namespace lockstep
