// The role that a certificate proves: a URI in its subject alternative names, in the form of a
// SPIFFE ID, "spiffe://JOB/ROLE" or "spiffe://JOB/ROLE/INDEX".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/security/caller.h"

namespace lockstep::security {

struct RoleUri {
  std::string job;  // the trust domain: certificates of other jobs are worth nothing
  Caller caller;

  bool operator==(const RoleUri&) const = default;
};

// "spiffe://digits/worker/1".
std::string ToString(const RoleUri& role);

// INVALID_ARGUMENT, naming what is wrong: `job` is no name of lower-case letters, digits, '.', '-'
// and '_', of at most 255 characters.
absl::Status CheckJobName(absl::string_view job);

// Of the URIs of one certificate, which must be one: an identity in two roles is none.
// UNAUTHENTICATED, showing them.
absl::StatusOr<RoleUri> RoleOf(absl::Span<const std::string> uris);

// UNAUTHENTICATED: `role` is of another job than `job`.
absl::Status CheckJob(const RoleUri& role, absl::string_view job);

}  // namespace lockstep::security
