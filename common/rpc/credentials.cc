#include "common/rpc/credentials.h"

#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/bearer.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/channel.h"
#include "common/rpc/listen_address.h"
#include "common/security/token_file.h"

namespace lockstep::rpc {
namespace {

class TokenCredentials final : public Credentials {
 public:
  // `callers`: null where this process serves nobody. `credential`: what it sends.
  TokenCredentials(std::unique_ptr<const CallerCheck> callers, const std::string& credential)
      : callers_(std::move(callers)), authorization_(absl::StrCat(kBearer, credential)) {}

  // Plain TCP from this machine alone.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const override {
    return callers_ == nullptr ? nullptr : grpc::experimental::LocalServerCredentials(LOCAL_TCP);
  }
  const CallerCheck* callers() const override { return callers_.get(); }

  std::shared_ptr<grpc::ChannelCredentials> ForChannel(const std::string&) const override {
    return grpc::InsecureChannelCredentials();
  }

  void AddTo(grpc::ClientContext* context) const override {
    context->AddMetadata(kAuthorization, authorization_);
  }

  bool encrypts() const override { return false; }

  absl::Status CheckAddress(const std::string& address) const override {
    if (CheckLoopback(address).ok()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--token_file: the token would go to ", address,
                     " unencrypted. Remedy: --tls_cert and --tls_ca, or loopback addresses "
                     "(docs/security.md)"));
  }

 private:
  const std::unique_ptr<const CallerCheck> callers_;
  const std::string authorization_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Credentials>> MakeTokenCredentials(
    const std::string& token_file, const security::Caller& self) {
  LOCKSTEP_ASSIGN_OR_RETURN(security::JobToken token, security::ReadJobToken(token_file));
  const std::string credential = token.CredentialFor(self);
  return std::make_shared<TokenCredentials>(MakeTokenCheck(std::move(token)), credential);
}

absl::StatusOr<std::shared_ptr<const Credentials>> MakeToolCredentials(
    const std::string& token_file, security::CallerRole role) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string credential,
                            security::ReadCredential(token_file, {.role = role}));
  return std::make_shared<TokenCredentials>(nullptr, credential);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Credentials* credentials) {
  return MakeChannelWith(address, credentials == nullptr ? grpc::InsecureChannelCredentials()
                                                         : credentials->ForChannel(address));
}

}  // namespace lockstep::rpc
