// Who called: read from a call's metadata or its connection's certificate, before its message is
// decoded, and compared with the worker that a decoded request speaks for.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/server_context.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/security/job_token.h"

namespace lockstep::rpc {

// The checks of gRPC's server: on a thread that polls, and before the message is read. The role is
// that of a credential which follows from the job's token,
std::shared_ptr<grpc::AuthMetadataProcessor> MakeTokenCheck(security::JobToken token);
// or that of the certificate which the caller has shown for this job.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCertificateCheck(std::string job);

// The worker that a request speaks for; nullopt: it speaks for nobody.
template <typename Request>
std::optional<uint32_t> SpeakerOf(const Request& request) {
  if constexpr (requires { request.worker().worker(); }) {
    return request.worker().worker();
  } else if constexpr (requires { request.sender().worker(); }) {
    return request.sender().worker();
  } else if constexpr (requires {
                         { request.worker() } -> std::same_as<uint32_t>;
                       }) {
    return request.worker();
  } else {
    return std::nullopt;
  }
}

// PERMISSION_DENIED: the caller's certificate or credential is of another worker than `speaker`. A
// call without either has passed the server's check, which has none then.
absl::Status CheckSpeaker(const grpc::ServerContext& context, std::optional<uint32_t> speaker);

}  // namespace lockstep::rpc
