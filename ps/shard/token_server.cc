#include "ps/shard/token_server.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::ps {

absl::Status TokenServer::Commit(GlobalStep step, bool last, GlobalStep shard_step,
                                 DeferredCallbacks* deferred) {
  if (step >= shard_step || step > global_step_) {
    return absl::FailedPreconditionError(absl::StrCat("commit of step ", step.value(),
                                                      ": the shard is at step ", shard_step.value(),
                                                      ", the job at step ", global_step_.value()));
  }
  const bool is_next = step == global_step_;
  if (is_next) global_step_ = step.next();
  if (last && step.next() == global_step_) {
    Answer(queue_.Close(), deferred);
  } else if (is_next) {
    Answer(queue_.Commit(global_step_), deferred);
  }
  return absl::OkStatus();
}

void TokenServer::Restore(GlobalStep committed, DeferredCallbacks* deferred) {
  if (committed <= global_step_) return;
  global_step_ = committed;
  Answer(queue_.Commit(global_step_), deferred);
}

void TokenServer::Dequeue(const DequeueArguments& arguments, std::optional<GlobalStep> newest_push,
                          Callback<Token> done, DeferredCallbacks* deferred) {
  const DequeueCall call = ++last_dequeue_;
  dequeues_.emplace(call, std::move(done));
  const DequeueKey key{arguments.worker.worker, arguments.worker.incarnation,
                       arguments.dequeue_seq};
  Answer(queue_.Dequeue(key, call, newest_push, arguments.token_step), deferred);
}

// Of a token that is asked for again the view may be forgotten. All steps of that view are closed:
// nothing is left of them to take part in.
std::optional<ReplicaShare> TokenServer::ShareOf(const GrantedToken& token, GlobalStep step) const {
  if (replica_views_.empty()) return std::nullopt;
  const ReplicaView* const view = replica_views_.At(step);
  return view == nullptr ? ReplicaShare() : view->ShareOf(token.worker);
}

void TokenServer::Answer(TokenQueue::Answers answers, DeferredCallbacks* deferred) {
  for (TokenQueue::Answer& answer : answers) {
    const auto call = dequeues_.find(answer.call);
    LOCKSTEP_CHECK(call != dequeues_.end());
    if (answer.handout.ok()) {
      const GlobalStep step = answer.handout->done ? global_step_ : answer.handout->step;
      const bool stores = step == to_store_;
      deferred->Answer<Token>(std::move(call->second),
                              Token{.step = step,
                                    .done = answer.handout->done,
                                    .store_values = stores,
                                    .store_slots = stores && stores_slots_,
                                    .share = ShareOf(*answer.handout, step)});
    } else {
      deferred->Answer<Token>(std::move(call->second), answer.handout.status());
    }
    dequeues_.erase(call);
  }
}

}  // namespace lockstep::ps
