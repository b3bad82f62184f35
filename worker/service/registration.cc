#include "worker/service/registration.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/quantity.h"
#include "common/base/retry_policy.h"
#include "common/log/log.h"
#include "worker/service/last_reply.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kRemindEvery = absl::Seconds(5);
constexpr absl::Duration kLongestWait = absl::Milliseconds(500);

absl::StatusOr<RegisterTaskReply> CallOnce(ChiefClient* chief, const RegisterTaskRequest& request) {
  absl::Notification answered;
  absl::StatusOr<RegisterTaskReply> result;
  chief->Call(kRegisterTask, request, [&](absl::StatusOr<RegisterTaskReply> reply) {
    result = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

absl::Status NotReached(const RegistrationOptions& options, absl::Duration waited,
                        const absl::Status& failure) {
  return absl::UnavailableError(absl::StrCat(
      options.chief_name, " was not reached for ", DurationText(waited), ": ", failure.message(),
      ". Remedy: start it, or correct its address in the cluster spec; "
      "--start_timeout sets how long to wait"));
}

}  // namespace

absl::StatusOr<RegisterTaskReply> Register(ChiefClient* chief, RegisterTaskRequest request,
                                           const RegistrationOptions& options,
                                           const MonotonicNotification* stop) {
  const absl::Duration start = options.clock->Monotonic();
  absl::Duration next_report = start + kRemindEvery;
  RetryPolicy retry(CallKind::kPlain,
                    {.longest_pause = kLongestWait, .patience = options.start_timeout});
  LastReply last;
  while (true) {
    last.NameIn(&request);
    absl::StatusOr<RegisterTaskReply> reply = CallOnce(chief, request);
    if (reply.ok()) last.Set(reply->id());
    if (stop->HasBeenNotified()) return absl::CancelledError("told to stop before the job began");
    if (reply.ok() && (reply->ready() || reply->done())) return reply;

    const absl::Duration now = options.clock->Monotonic();
    absl::Duration pause;  // the chief parks the call of a worker that waits
    if (reply.ok()) {
      retry.OnSuccess();
    } else if (const auto again = retry.OnFailure(reply.status(), now); again.has_value()) {
      pause = *again;
    } else if (IsRetryable(reply.status(), CallKind::kPlain)) {
      return NotReached(options, retry.FailingFor(now), reply.status());
    } else {
      return reply;
    }
    if (now >= next_report) {
      next_report = now + kRemindEvery;
      const std::string seconds = DurationText(now - start);
      log::Warning(reply.ok() ? absl::StrCat("waiting for ", seconds,
                                             " for the job to begin, which waits for ",
                                             reply->waiting_for())
                              : absl::StrCat("waiting for ", seconds, " for the ",
                                             options.chief_name, ": ", reply.status().message()));
    }
    if (stop->WaitFor(pause)) return absl::CancelledError("told to stop before the job began");
  }
}

}  // namespace lockstep::worker
