// Encrypted connections. Who calls is known by the certificate that it shows (mutual TLS), or,
// where there is a token file, by the job's token. The files are read again when they change.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/credentials.h"
#include "common/rpc/peer_roles.h"
#include "common/security/caller.h"
#include "common/security/tls_files.h"

namespace lockstep::rpc {

struct TlsOptions {
  security::TlsFiles files;
  std::string token_file;  // empty: roles come from certificates
  // Who serves where: the role that its certificate must prove. At an address without one any
  // chief, ps or worker of the job may serve. Null: at all addresses.
  std::shared_ptr<const PeerRoles> peers;
  unsigned refresh_seconds = 5;  // between two looks at the files
};

// For a process that serves and calls. Errors of CheckTlsFiles and ReadJobToken. INVALID_ARGUMENT:
// without a token the certificate must prove the role of `self`.
absl::StatusOr<std::shared_ptr<const Credentials>> MakeTlsCredentials(const TlsOptions& options,
                                                                      const security::Caller& self);

// For a tool that only calls. It needs the authorities, and a certificate or a token; by the job's
// token it calls in `role`.
absl::StatusOr<std::shared_ptr<const Credentials>> MakeTlsToolCredentials(
    const TlsOptions& options, security::CallerRole role = security::CallerRole::kReader);

}  // namespace lockstep::rpc
