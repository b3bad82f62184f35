// Asks every ps for its status, beside everything else: what a step that does not close is waiting
// for.
//
// Lives on the executor's thread; asks on another.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/loop/executor.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

struct PsPending {
  std::string text;  // about all ps: "ps 0 waits for conv1/kernel (1 of 2, from worker 0)"
  uint32_t waiting_for_tokens = 0;  // workers, at the step shard
};

class PsProbe {
 public:
  // Blocks; called on the probe's thread.
  using Fetch = std::function<absl::StatusOr<ProcessStatus>(const std::string& address)>;

  // `executor` outlives the probe; destroy it after the executor has ended.
  PsProbe(std::vector<std::string> addresses, Fetch fetch, Executor* executor);
  // Waits for the call that runs.
  ~PsProbe();

  // Does nothing while the one before is not done.
  void Start(std::function<void(PsPending)> done);

 private:
  const std::vector<std::string> addresses_;
  const Fetch fetch_;
  Executor* const executor_;
  bool running_ = false;
  std::thread thread_;
};

// One ps in words; empty when it waits for nothing, or does not answer.
std::string DescribePending(int shard, const absl::StatusOr<ProcessStatus>& status);

}  // namespace lockstep::chief
