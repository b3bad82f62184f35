#include "common/client/shard_session.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/transport/ps_methods.h"

namespace lockstep {
namespace {

absl::Status SessionCancelled() { return absl::CancelledError("the session was cancelled"); }

PushAnswer HeaderOf(absl::StatusOr<TensorReply<PushReply>> reply) {
  if (!reply.ok()) return reply.status();
  return std::move(reply->header);
}

}  // namespace

ShardSession::ShardSession(const SessionOptions& options, TensorTransport* transport, Timer* timer,
                           const Clock* clock)
    : options_(options),
      transport_(transport),
      timer_(timer),
      clock_(clock),
      gate_(std::make_shared<Gate>()),
      gradient_(options, transport),
      values_(options, transport) {
  // The send loop runs on the timer's thread, not on the one that moves the calls.
  on_move_ = std::make_shared<const std::function<void()>>([this, timer, gate = gate_] {
    timer->After(absl::ZeroDuration(), [this, gate] {
      if (const Gate::Pass inside = gate->Enter()) Flush();
    });
  });
  transport_->NotifyOfMoves(on_move_);
}

ShardSession::~ShardSession() {
  {
    absl::MutexLock lock(&mutex_);
    CancelPlans();
  }
  Flush();
  gate_->Close();
  // Those whose calls have ended only now. Nobody else is here.
  const auto cancel = [](auto& done) {
    if (done) done(SessionCancelled());
  };
  cancel(fetched_);
  cancel(pushed_);
  cancel(token_.done);
  cancel(open_.done);
}

void ShardSession::Open(Callback<TransportInfo> done) {
  Start<TransportInfo>(
      &open_,
      [this](Callback<TransportInfo> told) {
        transport_->Open(options_.identity, std::move(told));
      },
      std::move(done));
}

void ShardSession::NotifyOfLoss(std::function<void(const absl::Status&)> on_loss) {
  on_loss_ = std::move(on_loss);
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

bool ShardSession::OwesGradient() const {
  absl::MutexLock lock(&mutex_);
  return gradient_.is_active() && !fusing_.is_parked;
}

void ShardSession::DequeueToken(DequeueSeq dequeue_seq, GlobalStep token_step,
                                Callback<DequeueTokenReply> done) {
  DequeueTokenRequest request;
  *request.mutable_worker() = options_.identity;
  request.set_dequeue_seq(dequeue_seq.value());
  request.set_token_step(token_step.value());
  Start<DequeueTokenReply>(
      &token_,
      [this, request = std::move(request)](Callback<DequeueTokenReply> told) {
        transport_->Call(kDequeueToken, request, {}, /*accepts_references=*/false,
                         [told = std::move(told)](auto reply) mutable {
                           if (!reply.ok()) return told(reply.status());
                           told(*reply->header);
                         });
      },
      std::move(done));
}

void ShardSession::ForgetGradient(absl::AnyInvocable<void()> done) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!forgotten_);
    forgotten_ = std::move(done);
  }
  Flush();
}

void ShardSession::Cancel() {
  {
    absl::MutexLock lock(&mutex_);
    CancelPlans();
  }
  transport_->Cancel();
  Flush();
}

bool ShardSession::HasEnded() const {
  absl::MutexLock lock(&mutex_);
  return loop_.is_cancelled;
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
    while (TellForgotten() || TellLost() || TellFetched() || TellPushed() || SendPush() ||
           SendFetch() || Send(&token_) || Send(&open_)) {
      continue;
    }
    ArmTimer();
  }
}

bool ShardSession::TellForgotten() {
  absl::AnyInvocable<void()> done;
  {
    absl::MutexLock lock(&mutex_);
    if (!forgotten_ || !gradient_.Forget()) return false;
    done = std::exchange(forgotten_, nullptr);
  }
  done();
  return true;
}

bool ShardSession::TellLost() {
  std::optional<absl::Status> loss;
  {
    absl::MutexLock lock(&mutex_);
    // Both end the plan themselves.
    if (loop_.is_cancelled || forgotten_) return false;
    loss = gradient_.TakeLoss();
  }
  if (!loss.has_value()) return false;
  if (on_loss_) on_loss_(*loss);
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
    const uint64_t generation = transport_->generation();
    if (std::exchange(generation_, generation) != generation) gradient_.Repeat();
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
      fusing_.is_parked = is_fused;
    }
    if (!push.has_value()) return false;
    call = std::make_shared<Call>(
        Call{std::move(pass), std::move(push), std::move(fetch), fusing_.dequeue_seq, generation});
  }
  OpenTransport();
  if (is_fused) {
    NextRequest* const next = call->push->header->mutable_next();
    next->set_dequeue_seq(call->dequeue_seq.value());
    if (call->fetch.has_value()) {
      *next->mutable_pull() = *call->fetch->request;
      next->mutable_pull()->clear_worker();
    }
    SendFused(std::move(call));
    return true;
  }
  transport_->Call(kPush, call->push->header, call->push->tensors, /*accepts_references=*/false,
                   [this, call](absl::StatusOr<TensorReply<PushReply>> reply) {
                     OnPushed(*call, HeaderOf(std::move(reply)));
                     Flush();
                   });
  return true;
}

void ShardSession::OnPushed(const Call& call, const PushAnswer& reply) {
  if (absl::IsNotFound(reply.status())) needs_open_->store(true);
  absl::MutexLock lock(&mutex_);
  // The transport may have moved after it judged the answer. Then GradientMessages::Repeat has
  // passed over this message, and the ps that serves now does not know the verdict.
  const bool has_moved = call.generation != generation_;
  gradient_.OnReply(*call.push, has_moved ? absl::UnavailableError("the shard has moved") : reply,
                    clock_->Monotonic());
}

void ShardSession::SendFused(std::shared_ptr<const Call> call) {
  const PushCall& push = *call->push;
  transport_->Call(kPushAndFetch, push.header, push.tensors,
                   call->fetch.has_value() && call->fetch->accepts_references,
                   [this, call](absl::StatusOr<TensorReply<PushReply>> reply) {
                     // Parked until then: made again.
                     const bool was_parked = absl::IsDeadlineExceeded(reply.status());
                     if (was_parked && !HasEnded()) return SendFused(call);
                     OnFused(*call, std::move(reply));
                   });
}

void ShardSession::OnFused(const Call& call, absl::StatusOr<TensorReply<PushReply>> reply) {
  {
    // Where the call has failed, the gradient is asked about and sent again.
    absl::MutexLock lock(&mutex_);
    fusing_.is_parked = false;
  }
  if (reply.ok() && reply->header->next().has_values() && call.fetch.has_value()) {
    auto* const values = reply->header->mutable_next()->mutable_values();
    OnFetched(*call.fetch,
              FetchedValues::Reply{{reply->header, values}, std::move(reply->tensors)});
  } else if (call.fetch.has_value()) {
    absl::MutexLock lock(&mutex_);
    values_.OnUnanswered(*call.fetch);
  }
  if (reply.ok() && reply->header->next().has_token()) {
    absl::MutexLock lock(&mutex_);
    fusing_.token = reply->header->next().token();
  }
  OnPushed(call, HeaderOf(std::move(reply)));
  Flush();
}

void ShardSession::OpenTransport() {
  if (!needs_open_->load() || !needs_open_->exchange(false)) return;
  transport_->Open(options_.identity,
                   [needs_open = needs_open_](const absl::StatusOr<TransportInfo>& info) {
                     if (!info.ok()) needs_open->store(true);
                   });
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
