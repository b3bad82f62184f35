#include "common/rpc/caller_check.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/primary_of_copy.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/rpc/bearer.h"
#include "common/security/credential_verifier.h"
#include "common/security/method_rules.h"
#include "common/security/role_uri.h"

namespace lockstep::rpc {
namespace {

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

// Without its scheme; empty where there is none, or more than one: no two readers may then take
// different ones.
template <typename Metadata>
absl::string_view CredentialIn(const Metadata& metadata) {
  if (metadata.count(kAuthorization) != 1) return "";
  const auto found = metadata.find(kAuthorization);
  absl::string_view value = View(found->second);
  return absl::ConsumePrefix(&value, kBearer) ? value : "";
}

// Of the certificate that the peer has shown, and that an authority has signed.
std::vector<std::string> PeerUris(const grpc::AuthContext& connection) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : connection.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return uris;
}

class TokenCheck final : public CallerCheck {
 public:
  explicit TokenCheck(security::JobToken token) : callers_(std::move(token)) {}

 private:
  absl::StatusOr<security::Caller> Authenticate(
      const grpc::ServerContextBase& context) const override {
    const absl::string_view credential = CredentialIn(context.client_metadata());
    if (credential.empty()) {
      return absl::UnauthenticatedError(
          "the call has no credential. Remedy: --token_file=FILE with the token of the job");
    }
    return callers_.Verify(credential);
  }

  const security::CredentialVerifier callers_;
};

class CertificateCheck final : public CallerCheck {
 public:
  explicit CertificateCheck(std::string job) : job_(std::move(job)) {}

 private:
  absl::StatusOr<security::Caller> Authenticate(
      const grpc::ServerContextBase& context) const override {
    const std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
    if (connection == nullptr || !connection->IsPeerAuthenticated()) {
      return absl::UnauthenticatedError(
          "the caller has shown no certificate. Remedy: --tls_cert=FILE with one of its role");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(security::RoleUri role, security::RoleOf(PeerUris(*connection)));
    LOCKSTEP_RETURN_IF_ERROR(security::CheckJob(role, job_));
    return role.caller;
  }

  const std::string job_;
};

}  // namespace

absl::Status CallerCheck::Check(absl::string_view path, const grpc::ServerContextBase& context,
                                std::optional<security::Caller>* caller) const {
  if (security::IsOpenToAll(path)) return absl::OkStatus();
  const absl::StatusOr<security::Caller> proved = Authenticate(context);
  if (proved.ok()) *caller = *proved;
  absl::Status status = proved.ok() ? security::CheckMethod(*proved, path) : proved.status();
  if (!status.ok()) Log(status);
  return status;
}

void CallerCheck::Log(const absl::Status& refusal) const {
  std::optional<std::string> line;
  {
    absl::MutexLock lock(&mutex_);
    line = refusals_.Admit(absl::StrCat("refused a call: ", refusal.message()),
                           Clock::Real()->Monotonic());
  }
  if (line.has_value()) log::Warning(*line);
}

std::unique_ptr<CallerCheck> MakeTokenCheck(security::JobToken token) {
  return std::make_unique<TokenCheck>(std::move(token));
}

std::unique_ptr<CallerCheck> MakeCertificateCheck(std::string job) {
  return std::make_unique<CertificateCheck>(std::move(job));
}

absl::Status CheckSpeaker(const std::optional<security::Caller>& caller,
                          const std::optional<Speaker>& speaker) {
  if (!speaker.has_value() || !caller.has_value()) return absl::OkStatus();
  const bool is_ps = caller->role == security::CallerRole::kPs;
  const bool is_primary = speaker->worker == kPrimaryWorker.value() &&
                          speaker->incarnation == kPrimaryIncarnation.value();
  const bool is_own = !caller->index.has_value() || *caller->index == speaker->worker;
  if (is_ps ? is_primary : is_own && !is_primary) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      security::ToString(*caller), " may not speak ",
      is_primary ? "as the primary of a copy" : absl::StrCat("for worker ", speaker->worker)));
}

}  // namespace lockstep::rpc
