// Asks the shards of a job with sync.ps_replicas whether they have the version that is evaluated: a
// copy that serves in place of its shard has kept none.
//
// Lives on the executor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chief/loop/executor.h"
#include "chief/sync/retry.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

class KeptVersionProbe {
 public:
  // `on_view` gets what a shard has answered, while that is the version. `shards`, `executor` and
  // `clock` outlive the calls in flight: destroy the probe after the executor has ended or is
  // closed.
  KeptVersionProbe(
      std::vector<PsControl*> shards, Executor* executor, const Clock* clock,
      std::function<void(GlobalStep version, size_t shard, const SetViewReply& view)> on_view);

  // The version, none while nothing is evaluated, and where the shards are: asks each shard once
  // there, until it has answered. Several times a second.
  void Update(std::optional<GlobalStep> version, const std::vector<ShardPlace>& places);

 private:
  struct Asked {
    std::string address;
    uint64_t call = 0;
    bool is_done = false;
    Retry retry;
  };

  void Ask(size_t shard);
  void OnAnswer(size_t shard, uint64_t call, const absl::StatusOr<SetViewReply>& view);

  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  const Clock* const clock_;
  const std::function<void(GlobalStep, size_t, const SetViewReply&)> on_view_;
  std::optional<GlobalStep> version_;
  std::vector<Asked> asked_;  // by shard, about the version
  uint64_t last_call_ = 0;
};

}  // namespace lockstep::chief
