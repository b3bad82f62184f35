#include "worker/service/heartbeat.h"

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/log/log.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kRetryPause = absl::Milliseconds(300);
constexpr absl::Duration kReportEvery = absl::Seconds(5);
// One parked call and one with news.
constexpr int kMostInFlight = 2;

}  // namespace

Heartbeat::Heartbeat(const HeartbeatOptions& options, ChiefClient* chief, const Progress* progress,
                     Callbacks callbacks)
    : options_(options),
      chief_(chief),
      progress_(progress),
      callbacks_(std::move(callbacks)),
      last_contact_(options.clock->Monotonic()),
      thread_([this] { Beat(); }) {}

Heartbeat::~Heartbeat() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    stopped_.Signal();
  }
  thread_.join();
}

void Heartbeat::Kick() {
  absl::MutexLock lock(&mutex_);
  kicked_ = true;
}

bool Heartbeat::MaySend() const {
  return stopping_ || end_.has_value() || in_flight_ == 0 ||
         (kicked_ && in_flight_ < kMostInFlight);
}

void Heartbeat::Beat() {
  std::optional<absl::Status> end;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (unreachable_) stopped_.AwaitFor(&mutex_, absl::Condition(&stopping_), kRetryPause);
      mutex_.Await(absl::Condition(this, &Heartbeat::MaySend));
      if (stopping_ || end_.has_value()) {
        end = end_;
        break;
      }
      kicked_ = false;
      ++in_flight_;
    }
    chief_->Heartbeat(MakeRequest(),
                      [this](absl::StatusOr<HeartbeatReply> reply) { OnReply(std::move(reply)); });
  }
  if (end.has_value()) callbacks_.end(*end);
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Heartbeat::Idle));
}

HeartbeatRequest Heartbeat::MakeRequest() const {
  const ProgressReport report = progress_->Report();
  HeartbeatRequest request;
  request.set_job_id(options_.job_id);
  request.set_worker(options_.worker);
  request.set_incarnation(options_.incarnation);
  request.set_local_step(report.local_step.value());
  request.set_waiting_for(report.waiting_for);
  request.set_examples(report.examples);
  request.set_accepted(report.accepted);
  request.set_stale(report.stale);
  request.set_seconds_computing(report.seconds_computing);
  for (EvaluationResult& result : callbacks_.results()) *request.add_results() = std::move(result);
  return request;
}

void Heartbeat::OnReply(absl::StatusOr<HeartbeatReply> reply) {
  const absl::Duration now = options_.clock->Monotonic();
  std::string report;
  if (reply.ok()) callbacks_.reply(*reply);
  {
    absl::MutexLock lock(&mutex_);
    --in_flight_;
    unreachable_ = false;
    if (reply.ok()) {
      last_contact_ = now;
      if (!reply->fail().empty()) {
        end_ = WithExitCode(absl::InternalError(absl::StrCat("the job failed: ", reply->fail())),
                            static_cast<ExitCode>(reply->fail_exit_code()));
      } else if (reply->finish()) {
        end_ = absl::OkStatus();
      }
    } else if (absl::IsUnavailable(reply.status()) || absl::IsDeadlineExceeded(reply.status())) {
      unreachable_ = true;
      if (now - last_contact_ >= options_.patience) {
        end_ = reply.status();
      } else if (now - last_contact_ >= kReportEvery && now >= next_report_) {
        next_report_ = now + kReportEvery;
        report = absl::StrCat("no contact with the chief for ",
                              absl::ToInt64Seconds(now - last_contact_),
                              " s: ", reply.status().message());
      }
    } else {
      end_ = reply.status();
    }
  }
  if (!report.empty()) log::Warning(report);
}

}  // namespace lockstep::worker
