// The secret that the processes of a job share where there are no certificates. It is never sent:
// each process sends a credential for its own role that follows from the secret, so whoever reads
// that of a worker cannot give orders to a ps.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/caller.h"

namespace lockstep::security {

// In a time that does not depend on where they differ.
bool SameSecret(absl::string_view a, absl::string_view b);

// Immutable; thread-safe.
class JobToken {
 public:
  // Of a text that NewText or a user wrote: "job:" and 64 hexadecimal digits. INVALID_ARGUMENT
  // names what is wrong with it, and shows none of it.
  static absl::StatusOr<JobToken> Parse(absl::string_view text);

  // 256 bits of the system's random numbers, in the form that Parse reads, with a line's end.
  static std::string NewText();

  // What `caller` sends: "worker/1:" and HMAC-SHA256(secret, "worker/1") in hexadecimal digits.
  std::string CredentialFor(const Caller& caller) const;

  // The caller that a credential proves. UNAUTHENTICATED: it is none of this job's. Takes the same
  // time for every wrong one of a role.
  absl::StatusOr<Caller> Verify(absl::string_view credential) const;

 private:
  explicit JobToken(std::string secret) : secret_(std::move(secret)) {}

  std::string secret_;  // bytes
};

}  // namespace lockstep::security
