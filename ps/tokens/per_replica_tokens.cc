#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "ps/tokens/token_policy.h"

namespace lockstep::ps {
namespace {

class PerReplicaTokens final : public TokenPolicy {
 public:
  explicit PerReplicaTokens(GlobalStep start) : start_(start), current_(start) {}

  GrantedTokens Request(WorkerIndex worker, std::optional<GlobalStep> newest_push) override {
    if (closed_) return {{worker, GlobalStep(), true}};
    Replica& replica = ReplicaOf(worker);
    if (newest_push.has_value()) replica.spent = std::max(replica.spent, *newest_push);
    if (replica.spent < current_) {
      replica.spent = current_;
      return {{worker, current_, false}};
    }
    replica.waits = true;
    return {};
  }

  void SetToken(WorkerIndex worker, GlobalStep step) override {
    ReplicaOf(worker).spent = std::max(step, start_);
  }

  void Withdraw(WorkerIndex worker) override { ReplicaOf(worker).waits = false; }

  // What the predecessor spent or pushed is no reason to keep the token from its successor, which
  // may have been told an older step to start from than the predecessor had reached.
  void Succeed(WorkerIndex worker) override { ReplicaOf(worker) = Replica{start_, false}; }

  GrantedTokens Commit(GlobalStep step) override {
    current_ = step;
    GrantedTokens granted;
    for (auto& [worker, replica] : replicas_) {
      if (!replica.waits || replica.spent >= current_) continue;
      replica.waits = false;
      replica.spent = current_;
      granted.push_back({worker, current_, false});
    }
    return granted;
  }

  GrantedTokens Close() override {
    closed_ = true;
    GrantedTokens granted;
    for (auto& [worker, replica] : replicas_) {
      if (replica.waits) granted.push_back({worker, GlobalStep(), true});
      replica.waits = false;
    }
    return granted;
  }

  GrantedTokens Reopen(GlobalStep step) override {
    if (!std::exchange(closed_, false)) return {};
    return Commit(step);
  }

 private:
  struct Replica {
    GlobalStep spent;  // newest step for which it had a token or pushed
    bool waits = false;
  };

  Replica& ReplicaOf(WorkerIndex worker) {
    return replicas_.try_emplace(worker, Replica{start_, false}).first->second;
  }

  const GlobalStep start_;
  GlobalStep current_;  // the step of every token that is not spent
  bool closed_ = false;
  absl::btree_map<WorkerIndex, Replica> replicas_;  // ordered: handed out by index
};

}  // namespace

std::unique_ptr<TokenPolicy> MakePerReplicaTokens(GlobalStep start) {
  return std::make_unique<PerReplicaTokens>(start);
}

}  // namespace lockstep::ps
