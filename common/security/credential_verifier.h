// Verifies the credentials of callers, many times a second from the same few.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/security/caller.h"
#include "common/security/job_token.h"

namespace lockstep::security {

// Thread-safe.
class CredentialVerifier {
 public:
  explicit CredentialVerifier(JobToken token) : token_(std::move(token)) {}

  // As JobToken::Verify, but computes the code of a caller only until it has proved itself once.
  absl::StatusOr<Caller> Verify(absl::string_view credential) const;

 private:
  struct Proved {
    std::string credential;
    Caller caller;
  };

  // Jobs have fewer processes; more would come from somebody who holds the token.
  static constexpr size_t kMaxProved = 4096;

  const JobToken token_;
  mutable absl::Mutex mutex_;
  // By the name in the credential: "worker/1".
  mutable absl::flat_hash_map<std::string, Proved> proved_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::security
