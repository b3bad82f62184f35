// The same call to every shard, repeated at each until it answers. Lives on the executor's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/sync/retry.h"
#include "common/base/callback.h"
#include "common/base/clock.h"

namespace lockstep::chief {

class ShardCalls {
 public:
  // Makes the call to one shard; `answered` is called once, on the executor's thread.
  using Call = std::function<void(size_t shard, StatusCallback answered)>;

  // `done` is called once: OK when every shard has answered, or the first error that repeating does
  // not repair; a call's errors name the shard. `clock` outlives the calls; destroy them after the
  // executor has ended or is closed.
  ShardCalls(std::vector<std::string> shard_names, const Clock* clock, Call call,
             StatusCallback done);

  void Start();
  // A shard may have moved. As many as before.
  void SetNames(std::vector<std::string> shard_names) { shard_names_ = std::move(shard_names); }
  // Repeats what is due. Several times a second.
  void Tick();
  // Repeats what waits for the end of its pause.
  void RepeatNow();
  // No further calls: what has not answered is left out, and `done` is called with OK.
  void Finish() {
    if (!ended_) End(absl::OkStatus());
  }
  // Makes no further calls and does not call `done`.
  void Stop() { ended_ = true; }

  bool ended() const { return ended_; }
  bool HasAnswered(size_t shard) const { return shards_[shard].answered; }
  // Why this shard has not answered; OK when it has.
  absl::Status Problem(size_t shard) const;
  // The last error of each shard that has not answered, joined by "; ". Empty when all have.
  std::string DescribeWaiting() const;

 private:
  struct Shard {
    bool answered = false;
    Retry retry;
    absl::Status problem;
  };

  void Send(size_t shard);
  void OnAnswer(size_t shard, absl::Status status);
  void End(absl::Status status);

  std::vector<std::string> shard_names_;
  const Clock* const clock_;
  const Call call_;
  StatusCallback done_;
  std::vector<Shard> shards_;
  size_t open_;
  bool ended_ = false;
};

}  // namespace lockstep::chief
