// A client's check of the server's certificate: it proves the role that is expected at the address.
#pragma once

#include <grpcpp/security/tls_certificate_verifier.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "common/security/caller.h"

namespace lockstep::rpc {

// Thread-safe; never blocks.
class RoleVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  // `expected`: nullopt where any process of the job may serve.
  RoleVerifier(std::string job, std::optional<security::Caller> expected)
      : job_(std::move(job)), expected_(expected) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> callback, grpc::Status* sync_status) override;
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string job_;
  const std::optional<security::Caller> expected_;
};

}  // namespace lockstep::rpc
