#include "ps/shard/push_pull.h"

#include <algorithm>
#include <utility>

namespace lockstep::ps {
namespace {

// The next version is made of this gradient, or exists without it.
bool MayWait(const PushOrder& order, const PushResult& result) {
  return result.shard_step > order.local_step ||
         std::ranges::all_of(result.statuses,
                             [](PushStatus status) { return status == PushStatus::kAccepted; });
}

void PullNext(Shard* shard, const std::optional<PullOrder>& pull, PushPullResult result,
              Callback<PushPullResult> done) {
  if (!pull.has_value()) return done(std::move(result));
  shard->Pull(*pull, [result = std::move(result),
                      done = std::move(done)](absl::StatusOr<PullResult> values) mutable {
    if (values.ok()) result.values = *std::move(values);
    done(std::move(result));
  });
}

}  // namespace

// The token first: later than that of the stamp, it exists only when the version does, so that
// nothing read is kept meanwhile.
void PushPull(Shard* shard, const PushOrder& order, NextOrder next, Callback<PushPullResult> done) {
  absl::StatusOr<PushResult> pushed = shard->Push(order);
  if (!pushed.ok()) return done(pushed.status());
  PushPullResult result{.push = *std::move(pushed)};
  if (order.ask || !MayWait(order, result.push)) return done(std::move(result));
  if (next.dequeue_seq == DequeueSeq()) {
    return PullNext(shard, next.pull, std::move(result), std::move(done));
  }
  shard->DequeueToken(
      {order.worker, next.dequeue_seq},
      [shard, stamp = order.local_step, pull = std::move(next.pull), result = std::move(result),
       done = std::move(done)](const absl::StatusOr<Token>& token) mutable {
        // Whoever took the place of this call in the queue may wait for the values, too.
        if (!token.ok()) return done(std::move(result));
        result.token = *token;
        // FIFO has tokens of steps that are open: the next version may need what is pushed with it.
        if (token->step <= stamp) return done(std::move(result));
        PullNext(shard, pull, std::move(result), std::move(done));
      });
}

}  // namespace lockstep::ps
