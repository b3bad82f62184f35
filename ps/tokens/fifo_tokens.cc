#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/tokens/token_policy.h"

namespace lockstep::ps {
namespace {

class FifoTokens final : public TokenPolicy {
 public:
  FifoTokens(GlobalStep start, int64_t initial, int64_t tokens_per_step)
      : tokens_per_step_(tokens_per_step), tokens_(initial, start) {}

  Handouts Request(WorkerIndex worker, std::optional<GlobalStep> /*newest_push*/) override {
    if (closed_ && tokens_.empty()) return {{worker, GlobalStep(), true}};
    waiting_.push_back(worker);
    return Serve();
  }

  void Withdraw(WorkerIndex worker) override {
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), worker), waiting_.end());
  }

  void Succeed(WorkerIndex worker) override { Withdraw(worker); }

  Handouts Commit(GlobalStep step) override {
    if (!closed_) tokens_.insert(tokens_.end(), tokens_per_step_, step);
    return Serve();
  }

  Handouts Close() override {
    closed_ = true;
    Handouts handouts;
    // Whoever waits does so because nothing is left.
    for (const WorkerIndex worker : waiting_) handouts.push_back({worker, GlobalStep(), true});
    waiting_.clear();
    return handouts;
  }

  Handouts Reopen(GlobalStep step) override {
    if (!std::exchange(closed_, false)) return {};
    return Commit(step);
  }

 private:
  Handouts Serve() {
    Handouts handouts;
    while (!tokens_.empty() && !waiting_.empty()) {
      handouts.push_back({waiting_.front(), tokens_.front(), false});
      waiting_.pop_front();
      tokens_.pop_front();
    }
    return handouts;
  }

  const int64_t tokens_per_step_;
  std::deque<GlobalStep> tokens_;
  std::deque<WorkerIndex> waiting_;
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
  return FifoCounts{std::max<int64_t>(initial, 0),
                    std::max(total_num_replicas, replicas_to_aggregate)};
}

}  // namespace lockstep::ps
