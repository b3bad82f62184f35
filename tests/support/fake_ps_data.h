// A PsData whose answers the test decides, on the calling thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/callback.h"
#include "tests/support/ps_data.h"

namespace lockstep {

// The handlers must be set before they are needed; they may be called from several threads.
class FakePsData final : public PsData {
 public:
  std::function<absl::StatusOr<PushReply>(const PushRequest& header, const std::string& payload)>
      on_push;
  std::function<absl::StatusOr<std::unique_ptr<PulledValues>>(const PullRequest&)> on_pull;
  std::function<absl::StatusOr<DequeueTokenReply>(const DequeueTokenRequest&)> on_dequeue;

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override;
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    done(on_pull(request));
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    done(on_dequeue(request));
  }
  void Cancel() override {}
  bool SharesMemory() const override { return shares_memory; }
  bool SendsByReference(std::span<const std::byte>) const override { return sees_gradients; }

  bool shares_memory = false;
  bool sees_gradients = false;
};

}  // namespace lockstep
