#include "common/client/shard_session.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace lockstep {
namespace {

absl::Status SessionCancelled() { return absl::CancelledError("the session was cancelled"); }

}  // namespace

ShardSession::ShardSession(const SessionOptions& options, PsData* ps, Timer* timer,
                           const Clock* clock)
    : options_(options),
      ps_(ps),
      timer_(timer),
      clock_(clock),
      gate_(std::make_shared<Gate>()),
      gradient_(options, ps),
      values_(options, ps) {}

ShardSession::~ShardSession() {
  {
    absl::MutexLock lock(&mutex_);
    CancelPlans();
  }
  Flush();
  gate_->Close();
  // Those whose calls have ended only now.
  Callback<PushSummary> pushed;
  Callback<GlobalStep> fetched;
  Callback<DequeueTokenReply> token;
  Callback<bool> opened;
  {
    absl::MutexLock lock(&mutex_);
    pushed.swap(pushed_);
    fetched.swap(fetched_);
    token.swap(token_.done);
    opened.swap(open_.done);
  }
  if (fetched) fetched(SessionCancelled());
  if (pushed) pushed(SessionCancelled());
  if (token) token(SessionCancelled());
  if (opened) opened(SessionCancelled());
}

void ShardSession::Open(Callback<bool> done) {
  Start<bool>(
      &open_, [this](Callback<bool> told) { ps_->ShareMemory(options_.identity, std::move(told)); },
      std::move(done));
}

void ShardSession::SetTargets(std::vector<FetchTarget> targets) {
  absl::MutexLock lock(&mutex_);
  values_.SetTargets(std::move(targets));
}

void ShardSession::SetTarget(size_t target, MutableTensorView value,
                             std::optional<std::span<const int64_t>> rows) {
  absl::MutexLock lock(&mutex_);
  values_.SetTarget(target, std::move(value), rows);
}

void ShardSession::Fetch(GlobalStep version, FetchKind kind, Callback<GlobalStep> done) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!fetched_);
    fetched_ = std::move(done);
    values_.Begin(version, kind);
    if (loop_.is_cancelled) values_.Cancel();
  }
  Flush();
}

const void* ShardSession::Value(size_t target) const {
  absl::MutexLock lock(&mutex_);
  return values_.Value(target);
}

void ShardSession::BeginGradient(PushSeq push_seq, GlobalStep local_step, int num_tensors) {
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_CHECK(!pushed_);
  gradient_.Begin(push_seq, local_step, num_tensors);
  fusing_ = {.awaits_message = options_.most_fused_bytes > 0 && num_tensors > 0};
  if (loop_.is_cancelled) gradient_.Cancel();
}

void ShardSession::Add(const GradientTensor& gradient) {
  bool is_last = false;
  {
    absl::MutexLock lock(&mutex_);
    gradient_.Add(gradient);
    is_last = gradient_.AllAdded();
  }
  if (is_last) Flush();
}

void ShardSession::EndStep(DequeueSeq dequeue_seq, Callback<PushSummary> done) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!pushed_ && gradient_.is_active() && gradient_.AllAdded());
    pushed_ = std::move(done);
    fusing_.has_ended = true;
    fusing_.dequeue_seq = dequeue_seq;
  }
  Flush();
}

bool ShardSession::HoldsGradient() const {
  absl::MutexLock lock(&mutex_);
  return fusing_.HoldsFetches();
}

void ShardSession::DequeueToken(DequeueSeq dequeue_seq, Callback<DequeueTokenReply> done) {
  DequeueTokenRequest request;
  *request.mutable_worker() = options_.identity;
  request.set_dequeue_seq(dequeue_seq.value());
  Start<DequeueTokenReply>(
      &token_,
      [this, request = std::move(request)](Callback<DequeueTokenReply> told) {
        ps_->DequeueToken(request, std::move(told));
      },
      std::move(done));
}

void ShardSession::Cancel() {
  {
    absl::MutexLock lock(&mutex_);
    CancelPlans();
  }
  ps_->Cancel();
  Flush();
}

void ShardSession::CancelPlans() {
  loop_.is_cancelled = true;
  gradient_.Cancel();
  values_.Cancel();
  fusing_.awaits_message = false;
  if (fusing_.held.has_value())
    gradient_.OnReply(*fusing_.held, SessionCancelled(), clock_->Monotonic());
  fusing_.held.reset();
}

void ShardSession::Flush() {
  const Gate::Pass inside = gate_->Enter();
  if (!inside) return;
  {
    absl::MutexLock lock(&mutex_);
    loop_.runs_again = true;
    if (std::exchange(loop_.is_running, true)) return;
  }
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!std::exchange(loop_.runs_again, false)) {
        loop_.is_running = false;
        return;
      }
    }
    // Values are told before the gradient they came with.
    while (TellFetched() || TellPushed() || SendPush() || SendFetch() || Send(&token_) ||
           Send(&open_)) {
      continue;
    }
    ArmTimer();
  }
}

bool ShardSession::TellFetched() {
  Callback<GlobalStep> done;
  std::optional<absl::StatusOr<GlobalStep>> result;
  {
    absl::MutexLock lock(&mutex_);
    result = values_.TakeResult();
    if (!result.has_value()) return false;
    done = std::exchange(fetched_, nullptr);
  }
  done(*std::move(result));
  return true;
}

bool ShardSession::TellPushed() {
  Callback<PushSummary> done;
  std::optional<absl::StatusOr<PushSummary>> result;
  {
    absl::MutexLock lock(&mutex_);
    if (pushed_) result = gradient_.TakeResult();
    if (!result.has_value()) return false;
    if (result->ok()) (*result)->token = std::exchange(fusing_.token, std::nullopt);
    done = std::exchange(pushed_, nullptr);
  }
  done(*std::move(result));
  return true;
}

bool ShardSession::SendPush() {
  Gate::Pass pass = gate_->Enter();
  if (!pass) return false;
  std::shared_ptr<Call> call;
  bool is_fused = false;
  {
    absl::MutexLock lock(&mutex_);
    std::optional<PushCall> push;
    if (!fusing_.held.has_value()) push = gradient_.Next(clock_->Monotonic());
    if (push.has_value() && std::exchange(fusing_.awaits_message, false) &&
        push->is_whole_gradient && push->num_bytes <= options_.most_fused_bytes) {
      fusing_.held.swap(push);
    }
    std::optional<FetchCall> fetch;
    if (fusing_.held.has_value() && fusing_.has_ended) {
      fusing_.held.swap(push);
      fetch = values_.Next(clock_->Monotonic());
      is_fused = fetch.has_value() || fusing_.dequeue_seq != DequeueSeq();
    }
    if (!push.has_value()) return false;
    call = std::make_shared<Call>(
        Call{std::move(pass), std::move(push), std::move(fetch), fusing_.dequeue_seq});
  }
  call->push->Round();
  if (is_fused) {
    NextRequest* const next = call->push->header.mutable_next();
    next->set_dequeue_seq(call->dequeue_seq.value());
    if (call->fetch.has_value()) {
      *next->mutable_pull() = call->fetch->request;
      next->mutable_pull()->clear_worker();
    }
    SendFused(std::move(call));
    return true;
  }
  ps_->Push(call->push->header, std::move(call->push->payload),
            [this, call](const absl::StatusOr<PushReply>& reply) {
              {
                absl::MutexLock lock(&mutex_);
                gradient_.OnReply(*call->push, reply, clock_->Monotonic());
              }
              Flush();
            });
  return true;
}

void ShardSession::SendFused(std::shared_ptr<const Call> call) {
  const PushCall& push = *call->push;
  ps_->PushPull(push.header, push.payload,
                [this, call = std::move(call)](absl::StatusOr<PushPullReply> reply) {
                  // Parked until then: made again.
                  if (absl::IsDeadlineExceeded(reply.status())) return SendFused(call);
                  OnFused(*call, std::move(reply));
                });
}

// Nobody else touches the targets of a request in flight.
void ShardSession::OnFused(const Call& call,
                           absl::StatusOr<PushPullReply> reply) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bool has_values = reply.ok() && reply->values != nullptr && call.fetch.has_value();
  absl::Status copied;
  if (has_values) copied = values_.CopyToTargets(*call.fetch, *reply->values);
  {
    absl::MutexLock lock(&mutex_);
    if (has_values) {
      values_.OnReply(*call.fetch, copied, std::move(reply->values), clock_->Monotonic());
    } else if (call.fetch.has_value()) {
      values_.OnUnanswered(*call.fetch);
    }
    if (reply.ok() && reply->push.next().has_token()) fusing_.token = reply->push.next().token();
    if (reply.ok()) {
      gradient_.OnReply(*call.push, std::move(reply->push), clock_->Monotonic());
    } else {
      gradient_.OnReply(*call.push, reply.status(), clock_->Monotonic());
    }
  }
  Flush();
}

bool ShardSession::SendFetch() {
  Gate::Pass pass = gate_->Enter();
  if (!pass) return false;
  std::shared_ptr<Call> call;
  {
    absl::MutexLock lock(&mutex_);
    if (fusing_.HoldsFetches()) return false;
    std::optional<FetchCall> fetch = values_.Next(clock_->Monotonic());
    if (!fetch.has_value()) return false;
    call = std::make_shared<Call>(Call{.pass = std::move(pass), .fetch = std::move(fetch)});
  }
  // Nobody else touches the targets of a request in flight.
  const auto on_reply =
      [this, call](absl::StatusOr<std::unique_ptr<PulledValues>> reply)
          ABSL_NO_THREAD_SAFETY_ANALYSIS {
            std::unique_ptr<PulledValues> values;
            if (reply.ok()) values = *std::move(reply);
            const absl::Status copied =
                values != nullptr ? values_.CopyToTargets(*call->fetch, *values) : reply.status();
            {
              absl::MutexLock lock(&mutex_);
              values_.OnReply(*call->fetch, copied, std::move(values), clock_->Monotonic());
            }
            Flush();
          };
  ps_->Pull(call->fetch->request, on_reply);
  return true;
}

template <typename T>
void ShardSession::Start(ParkedCall<T>* call, absl::AnyInvocable<void(Callback<T>)> start,
                         Callback<T> done) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!call->done);
    call->start = std::move(start);
    call->done = std::move(done);
    call->retry = RetryPolicy(CallKind::kParked, {.patience = options_.patience});
  }
  Flush();
}

template <typename T>
bool ShardSession::Send(ParkedCall<T>* call) {
  std::shared_ptr<Gate::Pass> pass;
  Callback<T> cancelled;
  {
    absl::MutexLock lock(&mutex_);
    if (!call->done || call->is_in_flight) return false;
    if (loop_.is_cancelled) {
      cancelled = std::exchange(call->done, nullptr);
    } else {
      if (clock_->Monotonic() < call->retry.not_before()) return false;
      pass = std::make_shared<Gate::Pass>(gate_->Enter());
      if (!*pass) return false;
      call->is_in_flight = true;
    }
  }
  if (cancelled) {
    cancelled(SessionCancelled());
  } else {
    call->start(
        [this, call, pass](absl::StatusOr<T> answer) { OnAnswer(call, std::move(answer)); });
  }
  return true;
}

template <typename T>
void ShardSession::OnAnswer(ParkedCall<T>* call, absl::StatusOr<T> answer) {
  Callback<T> done;
  {
    absl::MutexLock lock(&mutex_);
    call->is_in_flight = false;
    if (!answer.ok() && !call->retry.OnFailure(answer.status(), clock_->Monotonic()).has_value()) {
      answer = call->retry.GivenUp(answer.status());
      done = std::exchange(call->done, nullptr);
    } else if (answer.ok()) {
      done = std::exchange(call->done, nullptr);
    }
  }
  if (done) return done(std::move(answer));
  Flush();
}

void ShardSession::ArmTimer() {
  absl::Duration wake = absl::InfiniteDuration();
  {
    absl::MutexLock lock(&mutex_);
    wake = std::min(wake, gradient_.WakeAt().value_or(wake));
    if (!fusing_.HoldsFetches()) wake = std::min(wake, values_.WakeAt().value_or(wake));
    if (token_.done && !token_.is_in_flight) wake = std::min(wake, token_.retry.not_before());
    if (open_.done && !open_.is_in_flight) wake = std::min(wake, open_.retry.not_before());
    if (wake >= loop_.wakes_at) return;
    loop_.wakes_at = wake;
  }
  timer_->After(wake - clock_->Monotonic(), [this, gate = gate_] {
    const Gate::Pass inside = gate->Enter();
    if (!inside) return;
    {
      absl::MutexLock lock(&mutex_);
      loop_.wakes_at = absl::InfiniteDuration();
    }
    Flush();
  });
}

}  // namespace lockstep
