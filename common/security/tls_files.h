// The files that TLS needs. They are checked when a process starts, because gRPC says no more of
// them than that a handshake has failed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep::security {

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  // this process's, then those between it and an authority
  std::string key;          // empty: in the file of the certificate
  std::string authorities;  // who signs the certificates that are trusted

  // No TLS.
  bool empty() const { return certificate.empty() && key.empty() && authorities.empty(); }
  const std::string& key_file() const { return key.empty() ? certificate : key; }
};

struct Certificate {
  std::vector<std::string> uris;  // of its subject alternative names
  absl::Time end;                 // of its validity
};

// Where a process shows its certificate.
struct CertificateUse {
  bool in_calls = false;  // to the servers that it calls
  bool serving = false;   // to its own callers
};

// Whether `files` suit this use: the key is the certificate's, and the authorities accept the
// certificate now. INVALID_ARGUMENT naming the file and what is wrong with it; PERMISSION_DENIED:
// other users may read the key; NOT_FOUND: there is no file.
absl::StatusOr<Certificate> CheckTlsFiles(const TlsFiles& files, const CertificateUse& use);

// INVALID_ARGUMENT: the file holds no certificate. For callers that have none of their own.
absl::Status CheckAuthorities(const std::string& path);

}  // namespace lockstep::security
