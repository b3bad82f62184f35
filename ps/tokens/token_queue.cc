#include "ps/tokens/token_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::ps {
namespace {

// Of two equal calls the older may arrive last, delayed. The newer one's caller asks once more.
absl::Status Replaced() { return absl::UnavailableError("the call was issued again"); }

absl::Status NotLive(WorkerIndex worker) {
  return absl::AbortedError(
      absl::StrCat("worker ", worker.value(), " is no longer in the view: register again"));
}

}  // namespace

TokenQueue::Answers TokenQueue::Dequeue(const DequeueKey& key, DequeueCall call,
                                        std::optional<GlobalStep> newest_push,
                                        std::optional<GlobalStep> token_step) {
  Answers answers;
  Replica& replica = ReplicaOf(key.worker, key.incarnation, &answers);
  if (key.dequeue_seq < replica.newest) {
    answers.push_back(
        {call, absl::FailedPreconditionError(absl::StrCat(
                   "dequeue ", key.dequeue_seq.value(), " of worker ", key.worker.value(),
                   " is over: its newest is ", replica.newest.value()))});
    return answers;
  }
  const bool is_repeated = key.dequeue_seq == replica.newest;
  if (is_repeated && replica.handout.has_value()) {
    answers.push_back({call, *replica.handout});
    return answers;
  }
  if (replica.call.has_value()) {
    answers.push_back({*replica.call, Replaced()});
    if (is_repeated) {
      replica.call = call;  // keeps its place among those who wait
      return answers;
    }
    policy_->Withdraw(key.worker);
  }
  replica.newest = key.dequeue_seq;
  replica.handout.reset();
  replica.call = call;
  if (finished_) {
    Deliver({{key.worker, GlobalStep(), true}}, &answers);
  } else {
    if (token_step.has_value()) policy_->SetToken(key.worker, *token_step);
    Deliver(policy_->Request(key.worker, newest_push), &answers);
  }
  return answers;
}

TokenQueue::Answers TokenQueue::SetView(
    absl::Span<const std::pair<WorkerIndex, Incarnation>> members) {
  Answers answers;
  for (auto& [worker, replica] : replicas_) {
    const std::pair<WorkerIndex, Incarnation> self(worker, replica.incarnation);
    const bool is_live = std::binary_search(members.begin(), members.end(), self);
    if (is_live || !replica.call.has_value()) continue;
    answers.push_back({*replica.call, NotLive(worker)});
    policy_->Withdraw(worker);
    replica.call.reset();
  }
  return answers;
}

TokenQueue::Answers TokenQueue::Commit(GlobalStep step) {
  Answers answers;
  Deliver(policy_->Commit(step), &answers);
  return answers;
}

TokenQueue::Answers TokenQueue::Close() {
  Answers answers;
  Deliver(policy_->Close(), &answers);
  return answers;
}

TokenQueue::Answers TokenQueue::Reopen(GlobalStep step) {
  Answers answers;
  Deliver(policy_->Reopen(step), &answers);
  return answers;
}

TokenQueue::Answers TokenQueue::Finish() {
  finished_ = true;
  Answers answers;
  for (auto& [worker, replica] : replicas_) {
    if (!replica.call.has_value()) continue;
    Deliver({{worker, GlobalStep(), true}}, &answers);
    policy_->Withdraw(worker);
  }
  return answers;
}

TokenQueue::Answers TokenQueue::Drop(const absl::Status& status) {
  Answers answers;
  for (auto& [worker, replica] : replicas_) {
    if (!replica.call.has_value()) continue;
    answers.push_back({*replica.call, status});
    policy_->Withdraw(worker);
    replica.call.reset();
  }
  return answers;
}

int TokenQueue::num_waiting() const {
  return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [](const auto& entry) {
    return entry.second.call.has_value();
  }));
}

TokenQueue::Replica& TokenQueue::ReplicaOf(WorkerIndex worker, Incarnation incarnation,
                                           Answers* answers) {
  const auto [entry, is_new] = replicas_.try_emplace(worker, Replica{incarnation});
  Replica& replica = entry->second;
  if (!is_new && replica.incarnation != incarnation) {
    if (replica.call.has_value()) answers->push_back({*replica.call, NotLive(worker)});
    policy_->Succeed(worker);
    replica = Replica{incarnation};
  }
  return replica;
}

void TokenQueue::Deliver(const GrantedTokens& granted, Answers* answers) {
  for (const GrantedToken& handout : granted) {
    Replica& replica = replicas_.at(handout.worker);
    answers->push_back({*replica.call, handout});
    replica.handout = handout;
    replica.call.reset();
  }
}

}  // namespace lockstep::ps
