#include "worker/service/heartbeat.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/log/log.h"
#include "worker/service/convert.h"

namespace lockstep::worker {
namespace {

// Shorter than a lease by far: a chief that is back hears of this worker before that ends.
constexpr absl::Duration kLongestPause = absl::Milliseconds(300);
// Of a process. 0 would say that the job is done.
constexpr int kLargestExitCode = 255;
// One parked call and one with news.
constexpr int kMostInFlight = 2;
// The chief waits two for it.
constexpr absl::Duration kLastCall = absl::Seconds(1);

}  // namespace

Heartbeat::Heartbeat(const HeartbeatOptions& options, ChiefClient* chief,
                     std::span<const Progress> progress, Callbacks callbacks)
    : options_(options),
      chief_(chief),
      progress_(progress),
      callbacks_(std::move(callbacks)),
      last_reply_(options.last_reply),
      retry_(CallKind::kPlain, {.longest_pause = kLongestPause, .patience = options.patience}),
      thread_([this] { Beat(); }) {}

Heartbeat::~Heartbeat() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    stopped_.Signal();
  }
  thread_.join();
}

void Heartbeat::Leave(absl::Duration limit) {
  {
    absl::MutexLock lock(&mutex_);
    const bool is_over = stopping_ || end_.has_value();
    stopping_ = true;
    stopped_.Signal();
    if (is_over) return;
    ++in_flight_;
  }
  HeartbeatRequest request = MakeRequest();
  request.set_leaving(true);
  SendLast(request, limit);
}

void Heartbeat::SendLast(const HeartbeatRequest& request, absl::Duration limit) {
  // The answer may come after the wait has timed out.
  const auto answered = std::make_shared<MonotonicNotification>();
  chief_->Call(kHeartbeat, request, [this, answered](const absl::StatusOr<HeartbeatReply>&) {
    answered->Notify();
    absl::MutexLock lock(&mutex_);
    --in_flight_;
  });
  answered->WaitFor(limit);
}

void Heartbeat::SetReady() {
  is_ready_ = true;
  SendNow();
}

void Heartbeat::Depart() {
  departs_ = true;
  SendNow();
}

void Heartbeat::SendNow() {
  absl::MutexLock lock(&mutex_);
  kicked_ = true;
}

bool Heartbeat::MaySend() const {
  return stopping_ || end_.has_value() || in_flight_ == 0 ||
         (kicked_ && in_flight_ < kMostInFlight);
}

void Heartbeat::Beat() {
  std::optional<absl::Status> end;
  bool is_told_end = false;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (pause_ > absl::ZeroDuration()) {
        stopped_.AwaitFor(&mutex_, absl::Condition(&stopping_), pause_);
      }
      mutex_.Await(absl::Condition(this, &Heartbeat::MaySend));
      if (stopping_ || end_.has_value()) {
        end = end_;
        is_told_end = is_told_end_;
        if (is_told_end) ++in_flight_;
        break;
      }
      kicked_ = false;
      ++in_flight_;
    }
    chief_->Call(kHeartbeat, MakeRequest(),
                 [this](absl::StatusOr<HeartbeatReply> reply) { OnReply(std::move(reply)); });
  }
  if (end.has_value()) callbacks_.end(*end);
  if (is_told_end) SendLast(MakeRequest(), kLastCall);
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Heartbeat::Idle));
}

HeartbeatRequest Heartbeat::MakeRequest() const {
  const ProgressReport report = Combine(progress_);
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
  SetFailedView(callbacks_.failed_view(), &request);
  request.set_ready(is_ready_);
  request.set_departing(departs_);
  last_reply_.NameIn(&request);
  for (EvaluationResult& result : callbacks_.results()) *request.add_results() = std::move(result);
  return request;
}

void Heartbeat::OnReply(absl::StatusOr<HeartbeatReply> reply) {
  const absl::Duration now = options_.clock->Monotonic();
  std::optional<std::string> line;
  if (reply.ok()) {
    last_reply_.Set(reply->id());
    callbacks_.reply(*reply);
  }
  {
    absl::MutexLock lock(&mutex_);
    --in_flight_;
    line = reply.ok() ? OnSuccess(*reply, now) : OnFailure(reply.status(), now);
  }
  if (line.has_value()) log::Warning(*line);
}

std::optional<std::string> Heartbeat::OnSuccess(const HeartbeatReply& reply, absl::Duration now) {
  retry_.OnSuccess();
  pause_ = absl::ZeroDuration();
  is_told_end_ |= reply.finish() || !reply.fail().empty();
  if (!reply.fail().empty()) {
    const bool is_sound = reply.fail_exit_code() > 0 && reply.fail_exit_code() <= kLargestExitCode;
    end_ = WithExitCode(absl::InternalError(absl::StrCat("the job failed: ", reply.fail())),
                        is_sound ? static_cast<ExitCode>(reply.fail_exit_code()) : ExitCode::kBug);
  } else if (reply.finish()) {
    end_ = absl::OkStatus();
  }
  return outage_.OnContact(now);
}

std::optional<std::string> Heartbeat::OnFailure(const absl::Status& failure, absl::Duration now) {
  // The chief may have told the end before it went.
  if (end_.has_value()) return std::nullopt;
  const std::optional<absl::Duration> pause = retry_.OnFailure(failure, now);
  if (!pause.has_value()) {
    end_ = retry_.GivenUp(failure);
    return std::nullopt;
  }
  pause_ = *pause;
  return outage_.OnFailure(failure.message(), retry_.FailingFor(now), now);
}

}  // namespace lockstep::worker
