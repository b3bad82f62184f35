#include "common/rpc/caller_check.h"

#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/log/throttle.h"
#include "common/rpc/bearer.h"
#include "common/rpc/grpc_status.h"
#include "common/security/caller.h"
#include "common/security/method_rules.h"
#include "common/security/role_uri.h"

namespace lockstep::rpc {
namespace {

constexpr char kPath[] = ":path";

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

class CallerCheck : public grpc::AuthMetadataProcessor {
 public:
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* connection,
                       OutputMetadata*, OutputMetadata*) override {
    const auto path = metadata.find(kPath);
    const absl::string_view method = path == metadata.end() ? "" : View(path->second);
    const absl::Status status = Check(method, metadata, *connection);
    if (!status.ok()) Log(status);
    return ToGrpc(status);
  }

 private:
  // Any thread. UNAUTHENTICATED: the caller has proved no role.
  virtual absl::StatusOr<security::Caller> Authenticate(
      const InputMetadata& metadata, const grpc::AuthContext& connection) const = 0;

  absl::Status Check(absl::string_view method, const InputMetadata& metadata,
                     const grpc::AuthContext& connection) const {
    if (security::IsOpenToAll(method)) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(const security::Caller caller, Authenticate(metadata, connection));
    return security::CheckMethod(caller, method);
  }

  void Log(const absl::Status& refusal) {
    std::optional<std::string> line;
    {
      absl::MutexLock lock(&mutex_);
      line = refusals_.Admit(absl::StrCat("refused a call: ", refusal.message()),
                             Clock::Real()->Monotonic());
    }
    if (line.has_value()) log::Warning(*line);
  }

  absl::Mutex mutex_;
  log::Throttle refusals_ ABSL_GUARDED_BY(mutex_);
};

class TokenCheck final : public CallerCheck {
 public:
  explicit TokenCheck(security::JobToken token) : token_(std::move(token)) {}

 private:
  absl::StatusOr<security::Caller> Authenticate(const InputMetadata& metadata,
                                                const grpc::AuthContext&) const override {
    const absl::string_view credential = CredentialIn(metadata);
    if (credential.empty()) {
      return absl::UnauthenticatedError(
          "the call has no credential. Remedy: --token_file=FILE with the token of the job");
    }
    return token_.Verify(credential);
  }

  const security::JobToken token_;
};

class CertificateCheck final : public CallerCheck {
 public:
  explicit CertificateCheck(std::string job) : job_(std::move(job)) {}

 private:
  absl::StatusOr<security::Caller> Authenticate(
      const InputMetadata&, const grpc::AuthContext& connection) const override {
    if (!connection.IsPeerAuthenticated()) {
      return absl::UnauthenticatedError(
          "the caller has shown no certificate. Remedy: --tls_cert=FILE with one of its role");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(security::RoleUri role, security::RoleOf(PeerUris(connection)));
    LOCKSTEP_RETURN_IF_ERROR(security::CheckJob(role, job_));
    return role.caller;
  }

  const std::string job_;
};

// Nullopt where nothing is proved; the check of the server has passed that.
std::optional<security::Caller> ProvedBy(const grpc::ServerContext& context) {
  const auto connection = context.auth_context();
  if (connection != nullptr) {
    const auto role = security::RoleOf(PeerUris(*connection));
    if (role.ok()) return role->caller;
  }
  const absl::string_view credential = CredentialIn(context.client_metadata());
  return security::ParseCaller(credential.substr(0, credential.find(':')));
}

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> MakeTokenCheck(security::JobToken token) {
  return std::make_shared<TokenCheck>(std::move(token));
}

std::shared_ptr<grpc::AuthMetadataProcessor> MakeCertificateCheck(std::string job) {
  return std::make_shared<CertificateCheck>(std::move(job));
}

absl::Status CheckSpeaker(const grpc::ServerContext& context, std::optional<uint32_t> speaker) {
  if (!speaker.has_value()) return absl::OkStatus();
  const std::optional<security::Caller> caller = ProvedBy(context);
  if (!caller.has_value() || !caller->index.has_value() || *caller->index == *speaker) {
    return absl::OkStatus();
  }
  // At its copy a ps speaks for the only worker that a copy has, whatever its own index.
  if (caller->role == security::CallerRole::kPs) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(security::ToString(*caller), " may not speak for worker ", *speaker));
}

}  // namespace lockstep::rpc
