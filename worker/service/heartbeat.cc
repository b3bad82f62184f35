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
// Of looks at the silence of the chief. With a pause it stays below two periods, from which on a
// look counts as late.
constexpr absl::Duration kPeriod = absl::Milliseconds(400);
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
      watch_({.told_after = options.lease, .period = kPeriod, .reason = "it does not answer"},
             options.clock->Monotonic()),
      thread_([this] { Beat(); }) {}

Heartbeat::~Heartbeat() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void Heartbeat::Leave(absl::Duration limit) {
  {
    absl::MutexLock lock(&mutex_);
    const bool is_over = stopping_ || end_.has_value();
    stopping_ = true;
    changed_.Signal();
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
    changed_.Signal();
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
  changed_.Signal();
}

bool Heartbeat::MaySend() const {
  return stopping_ || end_.has_value() || in_flight_ == 0 ||
         (kicked_ && in_flight_ < kMostInFlight);
}

void Heartbeat::Beat() {
  std::optional<absl::Status> end;
  bool is_told_end = false;
  bool is_over = false;
  while (true) {
    bool sends = false;
    std::optional<std::string> line;
    std::string chief_name = callbacks_.chief_name();
    {
      absl::MutexLock lock(&mutex_);
      const absl::Duration pause = std::exchange(pause_, absl::ZeroDuration());
      if (pause > absl::ZeroDuration()) {
        changed_.AwaitFor(&mutex_, absl::Condition(&stopping_), pause);
      }
      sends = changed_.AwaitFor(&mutex_, absl::Condition(this, &Heartbeat::MaySend), kPeriod);
      if (!end_.has_value()) line = CheckChief(std::move(chief_name));
      is_over = stopping_ || end_.has_value();
      if (is_over) {
        end = end_;
        is_told_end = is_told_end_;
        if (is_told_end) ++in_flight_;
      } else if (sends) {
        kicked_ = false;
        ++in_flight_;
      }
    }
    if (line.has_value()) log::Warning(*line);
    if (is_over) break;
    if (!sends) continue;
    chief_->Call(kHeartbeat, MakeRequest(),
                 [this](absl::StatusOr<HeartbeatReply> reply) { OnReply(std::move(reply)); });
  }
  if (end.has_value()) callbacks_.end(*end);
  if (is_told_end) SendLast(MakeRequest(), kLastCall);
  AwaitAnswers(/*is_watching=*/!end.has_value());
}

void Heartbeat::AwaitAnswers(bool is_watching) {
  while (true) {
    std::optional<std::string> line;
    std::string chief_name = callbacks_.chief_name();
    {
      absl::MutexLock lock(&mutex_);
      if (changed_.AwaitFor(&mutex_, absl::Condition(this, &Heartbeat::Idle), kPeriod)) return;
      if (is_watching) line = CheckChief(std::move(chief_name));
    }
    if (line.has_value()) log::Warning(*line);
  }
}

std::optional<std::string> Heartbeat::CheckChief(std::string chief_name) {
  watch_.SetName(std::move(chief_name));
  return watch_.CheckSilence(options_.clock->Monotonic());
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
  std::string chief_name = callbacks_.chief_name();
  if (reply.ok()) Apply(*reply);
  {
    absl::MutexLock lock(&mutex_);
    --in_flight_;
    watch_.SetName(std::move(chief_name));
    if (reply.ok()) {
      line = OnSuccess(*reply, now);
    } else {
      OnFailure(reply.status(), now);
    }
    changed_.Signal();
  }
  if (line.has_value()) log::Warning(*line);
}

// Another thread that applies replies applies this one, too.
void Heartbeat::Apply(const HeartbeatReply& reply) {
  absl::ReleasableMutexLock lock(&mutex_);
  if (!last_reply_.Set(reply.id())) return;
  to_apply_.push_back(reply);
  if (std::exchange(is_applying_, true)) return;
  lock.Release();
  while (true) {
    HeartbeatReply next;
    {
      absl::MutexLock again(&mutex_);
      if (to_apply_.empty()) {
        is_applying_ = false;
        return;
      }
      next = std::move(to_apply_.front());
      to_apply_.pop_front();
    }
    callbacks_.reply(next);
  }
}

std::optional<std::string> Heartbeat::OnSuccess(const HeartbeatReply& reply, absl::Duration now) {
  retry_.OnSuccess();
  pause_ = absl::ZeroDuration();
  is_told_end_ |= reply.finish() || !reply.fail().empty();
  if (!reply.fail().empty()) {
    const bool is_sound = reply.fail_exit_code() > 0 && reply.fail_exit_code() <= kLargestExitCode;
    end_ = WithExitCode(absl::InternalError(absl::StrCat("the job was given up: ", reply.fail())),
                        is_sound ? static_cast<ExitCode>(reply.fail_exit_code()) : ExitCode::kBug);
  } else if (reply.finish()) {
    end_ = absl::OkStatus();
  }
  return watch_.OnHeard(now);
}

void Heartbeat::OnFailure(const absl::Status& failure, absl::Duration now) {
  // The chief may have told the end before it went.
  if (end_.has_value()) return;
  const std::optional<absl::Duration> pause = retry_.OnFailure(failure, now);
  if (!pause.has_value()) {
    end_ = retry_.GivenUp(failure);
    return;
  }
  pause_ = *pause;
  watch_.OnFailure(std::string(failure.message()));
}

}  // namespace lockstep::worker
