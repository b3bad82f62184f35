// PyTorch as a peer: the same network, forward and backward.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/peer_process.h"
#include "tests/bench/tower_side.h"

namespace lockstep::bench {

struct TorchOptions {
  std::string python;     // of an environment that has PyTorch
  int threads = 1;        // on the CPU
  bool on_gpu = false;    // the first one
  bool compiled = false;  // by torch.compile, which captures the step as a CUDA graph
};

// Not thread-safe.
class TorchPeer {
 public:
  // NOT_FOUND or UNAVAILABLE, with the remedy, where PyTorch does not start.
  static absl::StatusOr<std::unique_ptr<TorchPeer>> Start(const TorchOptions& options,
                                                          const TowerModel& model);

  // "PyTorch 2.11"
  const std::string& name() const { return name_; }
  // "PyTorch with NHWC, its fastest way, and mkl"
  const std::string& how() const { return how_; }
  absl::StatusOr<double> SecondsFor(int64_t steps);

 private:
  explicit TorchPeer(std::unique_ptr<PeerProcess> process) : process_(std::move(process)) {}

  const std::unique_ptr<PeerProcess> process_;
  std::string name_;
  std::string how_;
};

}  // namespace lockstep::bench
