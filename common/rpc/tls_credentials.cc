#include "common/rpc/tls_credentials.h"

#include <grpc/support/log.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/rpc/bearer.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/role_verifier.h"
#include "common/security/role_uri.h"
#include "common/security/token_file.h"

namespace lockstep::rpc {
namespace {

namespace tls = grpc::experimental;

using security::Caller;
using Provider = std::shared_ptr<tls::CertificateProviderInterface>;

class TlsCredentials final : public Credentials {
 public:
  struct Parts {
    Provider provider;
    std::unique_ptr<const CallerCheck> callers;  // null: this process serves nobody
    bool shows_certificate = false;
    std::string job;         // whose certificates are trusted; empty: by their hosts' names
    std::string credential;  // that calls carry; empty: none
    std::shared_ptr<const PeerRoles> peers;  // may be null
  };

  explicit TlsCredentials(Parts parts)
      : parts_(std::move(parts)), authorization_(absl::StrCat(kBearer, parts_.credential)) {}

  // Callers without a certificate get to the check of their role, which says what they lack; a
  // certificate that no authority has signed ends the handshake.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const override {
    if (parts_.callers == nullptr) return nullptr;
    tls::TlsServerCredentialsOptions options(parts_.provider);
    options.watch_identity_key_cert_pairs();
    if (parts_.shows_certificate) {
      options.watch_root_certs();
      options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
    }
    // Clients are known by their certificates, which name no host.
    options.set_certificate_verifier(std::make_shared<tls::NoOpCertificateVerifier>());
    return tls::TlsServerCredentials(options);
  }
  const CallerCheck* callers() const override { return parts_.callers.get(); }

  std::shared_ptr<grpc::ChannelCredentials> ForChannel(const std::string& address) const override {
    tls::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(parts_.provider);
    options.watch_root_certs();
    if (parts_.shows_certificate) options.watch_identity_key_cert_pairs();
    if (parts_.job.empty()) {
      options.set_certificate_verifier(std::make_shared<tls::HostNameCertificateVerifier>());
    } else {
      options.set_certificate_verifier(tls::ExternalCertificateVerifier::Create<RoleVerifier>(
          parts_.job, parts_.peers == nullptr ? std::nullopt : parts_.peers->At(address)));
      options.set_check_call_host(false);
    }
    return tls::TlsCredentials(options);
  }

  void AddTo(grpc::ClientContext* context) const override {
    if (!parts_.credential.empty()) context->AddMetadata(kAuthorization, authorization_);
  }

  bool encrypts() const override { return true; }
  absl::Status CheckAddress(const std::string&) const override { return absl::OkStatus(); }

 private:
  const Parts parts_;
  const std::string authorization_;
};

Provider Watch(const TlsOptions& options) {
  const security::TlsFiles& files = options.files;
  if (files.certificate.empty()) {
    return std::make_shared<tls::FileWatcherCertificateProvider>(files.authorities,
                                                                 options.refresh_seconds);
  }
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key_file(), files.certificate, files.authorities, options.refresh_seconds);
}

// Of a certificate, where roles come from them.
absl::StatusOr<security::RoleUri> OwnRole(const std::string& path,
                                          const security::Certificate& certificate) {
  absl::StatusOr<security::RoleUri> role = security::RoleOf(certificate.uris);
  if (role.ok()) return role;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", role.status().message(),
                                                 ", or --token_file, from which roles come then"));
}

absl::Status CheckOwnRole(const std::string& path, const Caller& shown, const Caller& self) {
  if (security::Proves(shown, self)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is the certificate of ", security::ToString(shown), ", this process is ",
      security::ToString(self), ". Remedy: give it its own --tls_cert"));
}

absl::Status CheckNamed(const security::TlsFiles& files) {
  if (!files.authorities.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--tls_ca is missing. Remedy: the file with the certificates that sign those of the job");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Credentials>> MakeTlsCredentials(const TlsOptions& options,
                                                                      const Caller& self) {
  const security::TlsFiles& files = options.files;
  LOCKSTEP_RETURN_IF_ERROR(CheckNamed(files));
  if (files.certificate.empty()) {
    return absl::InvalidArgumentError(
        "--tls_cert is missing. Remedy: the certificate of this process, which serves with TLS");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const security::Certificate certificate,
      security::CheckTlsFiles(files, {.in_calls = options.token_file.empty(), .serving = true}));
  log::Info(absl::StrCat("TLS with ", files.certificate, ", valid until ",
                         absl::FormatTime("%Y-%m-%d %H:%M", certificate.end, absl::UTCTimeZone()),
                         " UTC"));
  TlsCredentials::Parts parts{.provider = Watch(options), .peers = options.peers};
  if (!options.token_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(security::JobToken token, security::ReadJobToken(options.token_file));
    parts.credential = token.CredentialFor(self);
    parts.callers = MakeTokenCheck(std::move(token));
    return std::make_shared<TlsCredentials>(std::move(parts));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const security::RoleUri role, OwnRole(files.certificate, certificate));
  LOCKSTEP_RETURN_IF_ERROR(CheckOwnRole(files.certificate, role.caller, self));
  parts.shows_certificate = true;
  parts.job = role.job;
  parts.callers = MakeCertificateCheck(role.job);
  return std::make_shared<TlsCredentials>(std::move(parts));
}

absl::StatusOr<std::shared_ptr<const Credentials>> MakeTlsToolCredentials(
    const TlsOptions& options, security::CallerRole role) {
  const security::TlsFiles& files = options.files;
  LOCKSTEP_RETURN_IF_ERROR(CheckNamed(files));
  // A tool prints the error of its call; gRPC's lines beside it say the same.
  gpr_set_log_function([](gpr_log_func_args*) {});
  TlsCredentials::Parts parts{.provider = Watch(options)};
  if (!options.token_file.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(security::CheckAuthorities(files.authorities));
    LOCKSTEP_ASSIGN_OR_RETURN(parts.credential,
                              security::ReadCredential(options.token_file, {.role = role}));
    return std::make_shared<TlsCredentials>(std::move(parts));
  }
  if (files.certificate.empty()) {
    return absl::InvalidArgumentError(
        "--tls_cert is missing. Remedy: a certificate of the job, of a reader for example, or the "
        "job's --token_file if it has one");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const security::Certificate certificate,
                            security::CheckTlsFiles(files, {.in_calls = true}));
  LOCKSTEP_ASSIGN_OR_RETURN(const security::RoleUri own, OwnRole(files.certificate, certificate));
  parts.shows_certificate = true;
  parts.job = own.job;
  return std::make_shared<TlsCredentials>(std::move(parts));
}

}  // namespace lockstep::rpc
