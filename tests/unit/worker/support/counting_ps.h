// Clients of parameter servers that count what goes through them.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/callback.h"
#include "tests/support/ps_data.h"

namespace lockstep::worker::test {

class CountingPs {
 public:
  // `shards` outlive this.
  explicit CountingPs(std::span<PsData* const> shards) {
    for (PsData* shard : shards) {
      clients_.push_back(std::make_unique<Client>(shard, &counts_));
      pointers_.push_back(clients_.back().get());
    }
  }

  std::span<TensorTransport* const> pointers() const { return pointers_; }

  // From now on no push reaches its ps.
  void LosePushes() { counts_.loses_pushes = true; }

  // Of all kinds, without those that exchange memory.
  int64_t calls() const { return counts_.calls; }
  // Alone or with a push.
  int64_t pulls() const { return counts_.pulls; }
  // Payloads.
  int64_t pulled_bytes() const { return counts_.pulled; }
  int64_t pushed_bytes() const { return counts_.pushed; }
  // The rest of the messages, both ways.
  int64_t header_bytes() const { return counts_.headers; }

 private:
  struct Counts {
    std::atomic<int64_t> calls = 0;
    std::atomic<int64_t> pulls = 0;
    std::atomic<int64_t> pulled = 0;
    std::atomic<int64_t> pushed = 0;
    std::atomic<int64_t> headers = 0;
    std::atomic<bool> loses_pushes = false;
  };

  class Client final : public PsData {
   public:
    Client(PsData* shard, Counts* counts) : shard_(shard), counts_(counts) {}

    void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
              Callback<PushReply> done) override {
      Count(header, payload);
      if (counts_->loses_pushes) return done(absl::UnavailableError("connection refused"));
      shard_->Push(header, std::move(payload), std::move(done));
    }
    void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                  Callback<PushPullReply> done) override {
      Count(header, payload);
      if (header.next().has_pull()) ++counts_->pulls;
      if (counts_->loses_pushes) return done(absl::UnavailableError("connection refused"));
      shard_->PushPull(
          header, std::move(payload),
          [counts = counts_, done = std::move(done)](absl::StatusOr<PushPullReply> reply) mutable {
            if (reply.ok() && reply->values != nullptr) Count(*reply->values, counts);
            done(std::move(reply));
          });
    }
    void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
      ++counts_->calls;
      ++counts_->pulls;
      counts_->headers += static_cast<int64_t>(request.ByteSizeLong());
      shard_->Pull(request, [counts = counts_, done = std::move(done)](
                                absl::StatusOr<std::unique_ptr<PulledValues>> values) mutable {
        if (values.ok()) Count(**values, counts);
        done(std::move(values));
      });
    }
    void DequeueToken(const DequeueTokenRequest& request,
                      Callback<DequeueTokenReply> done) override {
      ++counts_->calls;
      shard_->DequeueToken(request, std::move(done));
    }
    void Cancel() override { shard_->Cancel(); }

   private:
    void Count(const PushRequest& header,
               const std::vector<std::span<const std::byte>>& payload) const {
      ++counts_->calls;
      counts_->headers += static_cast<int64_t>(header.ByteSizeLong());
      for (const auto& part : payload) counts_->pushed += static_cast<int64_t>(part.size());
    }
    static void Count(const PulledValues& values, Counts* counts) {
      counts->headers += static_cast<int64_t>(values.header().ByteSizeLong());
      for (const PullPiece& piece : values.header().pieces()) {
        counts->pulled += static_cast<int64_t>(piece.size());
      }
    }

    PsData* const shard_;
    Counts* const counts_;
  };

  Counts counts_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<TensorTransport*> pointers_;
};

}  // namespace lockstep::worker::test
