// CallerCheck identifies the caller of a call from its metadata or its connection's certificate,
// before the message is parsed. CheckSpeaker compares it with the worker that a parsed request
// speaks for.
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

// Thread-safe. Check runs on the polling threads, once for each call. gRPC's own hook for this
// (grpc::AuthMetadataProcessor) sends part of each read to another thread (docs/adr/0018).
class CallerCheck {
 public:
  virtual ~CallerCheck() = default;

  // Checks whether this call of `path` may be made. UNAUTHENTICATED, PERMISSION_DENIED: it is
  // refused, by the table of common/security/method_rules.h. A few refusals a second are logged.
  // Sets `caller`, also for a refused call; nullopt: it is unknown, or the method is open to all.
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

// Takes the role from a credential that is derived from the job's token.
std::unique_ptr<CallerCheck> MakeTokenCheck(security::JobToken token);
// Takes the role from the certificate that the caller has shown for this job.
std::unique_ptr<CallerCheck> MakeCertificateCheck(std::string job);

// Calls CallerCheck::Check. Without a check every call is allowed, and no caller is known.
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

// Returns the speaker of a request; nullopt: it has none.
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

// PERMISSION_DENIED: the known caller is another worker than `speaker`, or a ps that does not speak
// as the primary of a copy.
absl::Status CheckSpeaker(const std::optional<security::Caller>& caller,
                          const std::optional<Speaker>& speaker);

}  // namespace lockstep::rpc
