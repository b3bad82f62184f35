// What a worker says to one ps at the end of a step, in one call where it can be: the gradient, if
// that is one message, the wish for the values that are made of it, and for the next token. Between
// the ps and those who push and pull, who need not know: to them each call ends as if it had been
// made alone.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"

namespace lockstep {

// Thread-safe, but for the order of Hold, Release and TakeToken, which is the caller's. Whoever
// waits for answers goes before it, and `ps` after it.
class JoinedCalls final : public PsData {
 public:
  // Gradients of more than `most_bytes` are left alone.
  explicit JoinedCalls(PsData* ps, uint64_t most_bytes = std::numeric_limits<uint64_t>::max())
      : ps_(ps), most_bytes_(most_bytes) {}

  // A gradient of so many variables begins. If its first push brings all of it, that push waits for
  // Release, and the first pull until then goes with it.
  void Hold(int num_variables);
  // Lets what waits go, with the wish for a token unless that is 0; also a push that is still to
  // come, from a thread of the pusher's. The step must be one that ends with a token later than its
  // stamp, and that needs no second gradient of anybody: under FIFO somebody may have to push
  // twice, who would wait here. False: there is nothing to be answered when the step is over.
  bool Release(DequeueSeq dequeue_seq);
  // What came with the push that was released last; nullopt: the token is to be asked for.
  std::optional<DequeueTokenReply> TakeToken();

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Done<PushReply> done) override;
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Done<PushPullReply> done) override {
    ps_->PushPull(header, std::move(payload), std::move(done));
  }
  void Pull(const PullRequest& request, Done<std::unique_ptr<PulledValues>> done) override;
  void DequeueToken(const DequeueTokenRequest& request, Done<DequeueTokenReply> done) override {
    ps_->DequeueToken(request, std::move(done));
  }
  void ShareMemory(const WorkerIdentity& worker, Done<bool> done) override {
    ps_->ShareMemory(worker, std::move(done));
  }
  void Cancel() override;
  bool SharesMemory() const override { return ps_->SharesMemory(); }
  bool SharesGradient(std::span<const std::byte> bytes) const override {
    return ps_->SharesGradient(bytes);
  }
  bool SharesValues() const override { return ps_->SharesValues(); }

 private:
  using Values = std::unique_ptr<PulledValues>;

  // What waits for one another, where it is there.
  struct Waiting {
    PushRequest header;
    std::vector<std::span<const std::byte>> payload;
    Done<PushReply> pushed;
    PullRequest pull;
    Done<Values> pulled;
    DequeueSeq dequeue_seq;
    bool is_released = false;
  };

  // True: in one call.
  bool Send(Waiting waiting);
  void SendJoined(std::shared_ptr<const Waiting> sent);

  PsData* const ps_;  // outlives this
  const uint64_t most_bytes_;
  absl::Mutex mutex_;
  int num_variables_ ABSL_GUARDED_BY(mutex_) = 0;  // of a gradient whose first push is to come
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<DequeueTokenReply> token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
