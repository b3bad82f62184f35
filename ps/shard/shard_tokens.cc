#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "ps/shard/shard_impl.h"

namespace lockstep::ps {

absl::StatusOr<GlobalStep> Shard::Impl::CommitStep(const Command& command, GlobalStep step,
                                                   bool last) {
  DeferredCallbacks deferred;
  absl::StatusOr<GlobalStep> global_step;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitCommand(command));
    LOCKSTEP_RETURN_IF_ERROR(Commit(step, last, &deferred));
    global_step = state_->global_step;
  }
  deferred.Run();
  return global_step;
}

absl::Status Shard::Impl::Commit(GlobalStep step, bool last, DeferredCallbacks* deferred) {
  EpochState& state = *state_;
  if (state.tokens == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("commit of step ", step.value(),
                                                      ": sent to shard ", view_.shard().value(),
                                                      "; the step shard is shard 0"));
  }
  if (step >= state.step.shard_step() || step > state.global_step) {
    return absl::FailedPreconditionError(absl::StrCat(
        "commit of step ", step.value(), ": the shard is at step ", state.step.shard_step().value(),
        ", the job at step ", state.global_step.value()));
  }
  const bool is_next = step == state.global_step;
  if (is_next) state.global_step = step.next();
  if (last && step.next() == state.global_step) {
    AnswerDequeues(state.tokens->Close(), deferred);
  } else if (is_next) {
    AnswerDequeues(state.tokens->Commit(state.global_step), deferred);
  }
  return absl::OkStatus();
}

void Shard::Impl::DequeueToken(const DequeueOrder& order, Callback<Token> done) {
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = AdmitWorker(order.worker);
    if (status.ok() && state_->tokens == nullptr) {
      status = absl::FailedPreconditionError(
          absl::StrCat("tokens are at shard 0, this is shard ", view_.shard().value()));
    }
    if (status.ok() && order.dequeue_seq == DequeueSeq()) {
      status = absl::InvalidArgumentError("dequeue_seq counts from 1, got 0");
    }
    if (!status.ok()) {
      deferred.Answer<Token>(std::move(done), status);
    } else {
      const WorkerIdentity& worker = order.worker;
      const DequeueCall call = ++last_dequeue_;
      dequeues_.emplace(call, std::move(done));
      AnswerDequeues(
          state_->tokens->Dequeue({worker.worker, worker.incarnation, order.dequeue_seq}, call,
                                  state_->ledger.NewestStamp(worker.worker, worker.incarnation)),
          &deferred);
    }
  }
  deferred.Run();
}

void Shard::Impl::AnswerDequeues(TokenQueue::Answers answers, DeferredCallbacks* deferred) {
  for (TokenQueue::Answer& answer : answers) {
    const auto call = dequeues_.find(answer.call);
    LOCKSTEP_CHECK(call != dequeues_.end());
    if (answer.handout.ok()) {
      const GlobalStep step = answer.handout->done ? state_->global_step : answer.handout->step;
      deferred->Answer<Token>(std::move(call->second), Token{step, answer.handout->done});
    } else {
      deferred->Answer<Token>(std::move(call->second), answer.handout.status());
    }
    dequeues_.erase(call);
  }
}

}  // namespace lockstep::ps
