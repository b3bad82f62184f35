#include "worker/service/registration.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/log/log.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kRemindEvery = absl::Seconds(5);
constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(500);

absl::StatusOr<RegisterTaskReply> CallOnce(ChiefClient* chief, const RegisterTaskRequest& request) {
  absl::Notification answered;
  absl::StatusOr<RegisterTaskReply> result;
  chief->RegisterTask(request, [&](absl::StatusOr<RegisterTaskReply> reply) {
    result = std::move(reply);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

}  // namespace

absl::StatusOr<RegisterTaskReply> Register(ChiefClient* chief, const RegisterTaskRequest& request,
                                           const RegistrationOptions& options,
                                           const MonotonicNotification* stop) {
  const absl::Duration start = options.clock->Monotonic();
  absl::Duration last_contact = start;
  absl::Duration next_report = start + kRemindEvery;
  while (true) {
    const absl::StatusOr<RegisterTaskReply> reply = CallOnce(chief, request);
    if (stop->HasBeenNotified()) return absl::CancelledError("told to stop before the job began");
    if (reply.ok() && (reply->ready() || reply->done())) return reply;
    const bool reached = reply.ok();
    if (!reached && !absl::IsUnavailable(reply.status()) &&
        !absl::IsDeadlineExceeded(reply.status()))
      return reply;

    const absl::Duration now = options.clock->Monotonic();
    if (reached) last_contact = now;
    if (now - last_contact >= options.start_timeout) {
      return absl::UnavailableError(
          absl::StrCat(options.chief_name, " was not reached for ",
                       absl::FormatDuration(now - last_contact), ": ", reply.status().message(),
                       ". Remedy: start it, or correct its address in the cluster spec; "
                       "--start_timeout sets how long to wait"));
    }
    if (now >= next_report) {
      next_report = now + kRemindEvery;
      const std::string seconds = absl::StrCat(absl::ToInt64Seconds(now - start), " s");
      log::Warning(reached ? absl::StrCat("waiting for ", seconds,
                                          " for the job to begin, which waits for ",
                                          reply->waiting_for())
                           : absl::StrCat("waiting for ", seconds, " for the ", options.chief_name,
                                          ": ", reply.status().message()));
    }
    if (stop->WaitFor(reached ? absl::ZeroDuration() : kAskAgainAfter)) {
      return absl::CancelledError("told to stop before the job began");
    }
  }
}

}  // namespace lockstep::worker
