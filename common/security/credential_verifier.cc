#include "common/security/credential_verifier.h"

#include "common/base/status_macros.h"

namespace lockstep::security {

absl::StatusOr<Caller> CredentialVerifier::Verify(absl::string_view credential) const {
  const absl::string_view name = credential.substr(0, credential.find(':'));
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto known = proved_.find(name);
    if (known != proved_.end() && SameSecret(known->second.credential, credential))
      return known->second.caller;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Caller caller, token_.Verify(credential));
  absl::MutexLock lock(&mutex_);
  if (proved_.size() < kMaxProved)
    proved_.try_emplace(name, Proved{std::string(credential), caller});
  return caller;
}

}  // namespace lockstep::security
