#include <algorithm>
#include <deque>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "ps/tokens/token_policy.h"

namespace lockstep::ps {
namespace {

class FifoTokens final : public TokenPolicy {
 public:
  FifoTokens(GlobalStep start, int64_t initial, int64_t tokens_per_step)
      : tokens_per_step_(tokens_per_step) {
    AddTokens(start, initial);
  }

  GrantedTokens Request(WorkerIndex worker, std::optional<GlobalStep> /*newest_push*/) override {
    if (closed_ && tokens_.empty()) return {{worker, GlobalStep(), true}};
    Withdraw(worker);
    place_of_[worker] = next_place_;
    waiting_.emplace(next_place_++, worker);
    return Serve();
  }

  // TensorFlow's queue does not know who has a token.
  void SetToken(WorkerIndex, GlobalStep) override {}

  void Withdraw(WorkerIndex worker) override {
    const auto place = place_of_.find(worker);
    if (place == place_of_.end()) return;
    waiting_.erase(place->second);
    place_of_.erase(place);
  }

  void Succeed(WorkerIndex worker) override { Withdraw(worker); }

  GrantedTokens Commit(GlobalStep step) override {
    if (!closed_) AddTokens(step, tokens_per_step_);
    return Serve();
  }

  GrantedTokens Close() override {
    closed_ = true;
    GrantedTokens granted;
    // Whoever waits does so because nothing is left.
    for (const auto& [place, worker] : waiting_) granted.push_back({worker, GlobalStep(), true});
    waiting_.clear();
    place_of_.clear();
    return granted;
  }

  GrantedTokens Reopen(GlobalStep step) override {
    if (!std::exchange(closed_, false)) return {};
    return Commit(step);
  }

 private:
  struct Tokens {
    GlobalStep step;
    int64_t count = 0;
  };

  void AddTokens(GlobalStep step, int64_t count) {
    if (count > 0) tokens_.push_back({step, count});
  }

  GrantedTokens Serve() {
    GrantedTokens granted;
    while (!tokens_.empty() && !waiting_.empty()) {
      const WorkerIndex worker = waiting_.begin()->second;
      granted.push_back({worker, tokens_.front().step, false});
      Withdraw(worker);
      if (--tokens_.front().count == 0) tokens_.pop_front();
    }
    return granted;
  }

  const int64_t tokens_per_step_;
  std::deque<Tokens> tokens_;                       // counted: a peer says how many there are
  absl::btree_map<uint64_t, WorkerIndex> waiting_;  // by place, in the order of asking
  absl::flat_hash_map<WorkerIndex, uint64_t> place_of_;
  uint64_t next_place_ = 0;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<TokenPolicy> MakeFifoTokens(GlobalStep start, int64_t initial,
                                            int64_t tokens_per_step) {
  return std::make_unique<FifoTokens>(start, initial, tokens_per_step);
}

absl::StatusOr<FifoCounts> CountFifoTokens(int64_t total_num_replicas,
                                           int64_t replicas_to_aggregate, int64_t init_tokens) {
  constexpr int64_t kDefault = -1;
  const int64_t needed = replicas_to_aggregate - total_num_replicas;
  const int64_t initial = init_tokens == kDefault ? replicas_to_aggregate : init_tokens;
  if (initial < needed) {
    return absl::InvalidArgumentError(
        absl::StrCat("too few tokens to finish the first step: init_tokens is ", init_tokens,
                     ", replicas_to_aggregate - total_num_replicas is ", needed));
  }
  if (initial > limits::kMaxInitTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("init_tokens: expected at most ", limits::kMaxInitTokens, ", got ",
                     init_tokens, ". Remedy: leave it out, it is replicas_to_aggregate then"));
  }
  return FifoCounts{std::max<int64_t>(initial, 0),
                    std::max(total_num_replicas, replicas_to_aggregate)};
}

}  // namespace lockstep::ps
