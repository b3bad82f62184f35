// Who calls: read from a call's metadata or its connection's certificate before its message is
// parsed, and compared with the worker that a parsed request speaks for.
#pragma once

#include <grpcpp/server_context.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/log/throttle.h"
#include "common/security/caller.h"
#include "common/security/job_token.h"

namespace lockstep::rpc {

// Thread-safe. It is asked on the threads that poll, once for each call. gRPC's own hook for this
// (grpc::AuthMetadataProcessor) sends part of each read to another thread (docs/adr/0018).
class CallerCheck {
 public:
  virtual ~CallerCheck() = default;

  // Whether this call of `path` may be made. UNAUTHENTICATED, PERMISSION_DENIED: it is refused, by
  // the table of common/security/method_rules.h. A few refusals a second are logged. `caller` is
  // set to who makes the call, also where it is refused; nullopt: nobody knows, or the method is
  // open to all.
  absl::Status Check(absl::string_view path, const grpc::ServerContextBase& context,
                     std::optional<security::Caller>* caller) const;

 private:
  // UNAUTHENTICATED: the caller has proved no role.
  virtual absl::StatusOr<security::Caller> Authenticate(
      const grpc::ServerContextBase& context) const = 0;

  void Log(const absl::Status& refusal) const;

  mutable absl::Mutex mutex_;
  mutable log::Throttle refusals_ ABSL_GUARDED_BY(mutex_);
};

// The role is that of a credential which follows from the job's token,
std::unique_ptr<CallerCheck> MakeTokenCheck(security::JobToken token);
// or that of the certificate which the caller has shown for this job.
std::unique_ptr<CallerCheck> MakeCertificateCheck(std::string job);

// CallerCheck::Check; without a check everybody may call, and nobody is known.
inline absl::Status CheckCaller(const CallerCheck* callers, absl::string_view path,
                                const grpc::ServerContextBase& context,
                                std::optional<security::Caller>* caller) {
  if (callers == nullptr) return absl::OkStatus();
  return callers->Check(path, context, caller);
}

// A start of a worker, or the primary of a copy (common/base/primary_of_copy.h).
struct Speaker {
  uint32_t worker = 0;
  uint64_t incarnation = 0;
};

// For whom a request speaks; nullopt: for nobody.
template <typename Request>
std::optional<Speaker> SpeakerOf(const Request& request) {
  const auto speaker = [](const auto& of) { return Speaker{of.worker(), of.incarnation()}; };
  if constexpr (requires { request.worker().worker(); }) {
    return speaker(request.worker());
  } else if constexpr (requires { request.sender().worker(); }) {
    return speaker(request.sender());
  } else if constexpr (requires {
                         { request.worker() } -> std::same_as<uint32_t>;
                       }) {
    return speaker(request);
  } else {
    return std::nullopt;
  }
}

// PERMISSION_DENIED: the caller is known, and another worker than `speaker`, or a ps, which speaks
// as the primary of a copy alone.
absl::Status CheckSpeaker(const std::optional<security::Caller>& caller,
                          const std::optional<Speaker>& speaker);

}  // namespace lockstep::rpc
