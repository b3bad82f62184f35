#include "common/client/joined_calls.h"

#include <utility>

namespace lockstep {
namespace {

uint64_t NumBytes(const PushRequest& push) {
  uint64_t bytes = 0;
  for (const PushPiece& piece : push.pieces()) bytes += piece.size();
  return bytes;
}

}  // namespace

void JoinedCalls::Hold(int num_variables) {
  absl::MutexLock lock(&mutex_);
  num_variables_ = num_variables;
  token_.reset();
}

bool JoinedCalls::Release(DequeueSeq dequeue_seq) {
  Waiting waiting;
  {
    absl::MutexLock lock(&mutex_);
    waiting_.dequeue_seq = dequeue_seq;
    waiting_.is_released = true;
    if (num_variables_ > 0) return true;
    waiting = std::exchange(waiting_, {});
  }
  return Send(std::move(waiting));
}

std::optional<DequeueTokenReply> JoinedCalls::TakeToken() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(token_, std::nullopt);
}

void JoinedCalls::Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                       Done<PushReply> done) {
  Waiting waiting;
  {
    absl::MutexLock lock(&mutex_);
    const int awaited = std::exchange(num_variables_, 0);
    if (awaited > 0 && awaited == header.pieces_size() && !header.ask() &&
        NumBytes(header) <= most_bytes_) {
      waiting_.header = header;
      waiting_.payload = std::move(payload);
      waiting_.pushed = std::exchange(done, nullptr);
      if (!waiting_.is_released) return;
    }
    if (awaited > 0) waiting = std::exchange(waiting_, {});
  }
  if (done) ps_->Push(header, std::move(payload), std::move(done));
  Send(std::move(waiting));
}

void JoinedCalls::Pull(const PullRequest& request, Done<Values> done) {
  {
    absl::MutexLock lock(&mutex_);
    if ((num_variables_ > 0 || waiting_.pushed) && !waiting_.pulled) {
      waiting_.pull = request;
      waiting_.pulled = std::move(done);
      return;
    }
  }
  ps_->Pull(request, std::move(done));
}

void JoinedCalls::Cancel() {
  ps_->Cancel();
  Waiting waiting;
  {
    absl::MutexLock lock(&mutex_);
    num_variables_ = 0;
    waiting = std::exchange(waiting_, {});
  }
  Send(std::move(waiting));
}

bool JoinedCalls::Send(Waiting waiting) {
  const bool has_wishes = waiting.pulled || waiting.dequeue_seq != DequeueSeq();
  if (waiting.pushed && has_wishes) {
    NextRequest* const next = waiting.header.mutable_next();
    next->set_dequeue_seq(waiting.dequeue_seq.value());
    if (waiting.pulled) {
      *next->mutable_pull() = waiting.pull;
      next->mutable_pull()->clear_worker();
    }
    SendJoined(std::make_shared<const Waiting>(std::move(waiting)));
    return true;
  }
  if (waiting.pushed) {
    ps_->Push(waiting.header, std::move(waiting.payload), std::move(waiting.pushed));
  }
  if (waiting.pulled) ps_->Pull(waiting.pull, std::move(waiting.pulled));
  return false;
}

void JoinedCalls::SendJoined(std::shared_ptr<const Waiting> sent) {
  ps_->PushPull(sent->header, sent->payload, [this, sent](absl::StatusOr<PushPullReply> reply) {
    // Parked until then: issued again, as any such call is.
    if (absl::IsDeadlineExceeded(reply.status())) return SendJoined(sent);
    if (reply.ok() && reply->push.next().has_token()) {
      absl::MutexLock lock(&mutex_);
      token_ = reply->push.next().token();
    }
    // The verdicts last: a caller that waits for them finds token and values.
    if (sent->pulled && reply.ok() && reply->values != nullptr) {
      sent->pulled(std::move(reply->values));
    } else if (sent->pulled) {
      ps_->Pull(sent->pull, sent->pulled);
    }
    if (!reply.ok()) return sent->pushed(reply.status());
    sent->pushed(std::move(reply->push));
  });
}

}  // namespace lockstep
