// A simulated job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "tests/sim/network.h"

namespace lockstep::sim {

struct SimOptions {
  uint64_t seed = 0;
  uint32_t ps = 1;
  uint32_t workers = 2;
  uint32_t aggregate = 2;
  TokenPolicy token_policy = PER_REPLICA;
  QuorumPolicy quorum_policy = WAIT;
  int64_t init_tokens = -1;
  bool asynchronous = false;
  std::optional<int64_t> max_staleness;
  int64_t steps = 5;
  bool replicated = false;                  // strategy replicated, in place of parameter_server
  std::vector<int64_t> variables = {3, 2};  // elements of each, dealt out over the ps
  NetworkOptions network;
  absl::Duration least_compute = absl::Milliseconds(1);
  absl::Duration most_compute = absl::Milliseconds(5);
  bool same_every_time = false;  // see SimWorkerOptions
  // Where the job saves at its end, and what a chief that leaves saves. Only a folder that cannot
  // be written to: a checkpoint's commit takes a thread of its own.
  std::string checkpoints;
  // Of the first so many workers the data ends after so many batches.
  uint32_t short_of_data = 0;
  uint64_t batches = 0;
};

inline constexpr float kInitialValue = 8;
inline constexpr float kLearningRate = 0.125f;

}  // namespace lockstep::sim
