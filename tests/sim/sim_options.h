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

inline OptimizerDef SgdOptimizer() {
  OptimizerDef optimizer;
  optimizer.mutable_sgd();
  return optimizer;
}

struct SimOptions {
  bool is_table(uint32_t variable) const { return variable < tables; }

  uint64_t seed = 0;
  uint32_t ps = 1;
  uint32_t workers = 2;
  uint32_t chiefs = 1;  // in the cluster spec
  uint32_t aggregate = 2;
  TokenPolicy token_policy = PER_REPLICA;
  QuorumPolicy quorum_policy = WAIT;
  int64_t init_tokens = -1;
  bool asynchronous = false;
  std::optional<int64_t> max_staleness;
  int64_t steps = 5;
  bool replicated = false;                  // strategy replicated, in place of parameter_server
  bool copies = false;                      // of each shard, at the next ps: sync.ps_replicas
  std::vector<int64_t> variables = {3, 2};  // elements of each, dealt out over the ps
  // The first so many variables are tables, of rows with kRowElements: their gradients are sparse.
  uint32_t tables = 0;
  OptimizerDef optimizer = SgdOptimizer();  // its learning rate does not matter
  NetworkOptions network;
  absl::Duration least_compute = absl::Milliseconds(1);
  absl::Duration most_compute = absl::Milliseconds(5);
  absl::Duration heartbeat_pause = absl::Milliseconds(20);  // after one that was refused
  bool same_every_time = false;                             // see SimWorkerOptions
  // Half of the workers push and fetch in chunks of so many bytes.
  int least_chunk = 4;
  int most_chunk = 16;
  // Where the job saves at its end, and after each so many steps; what a chief that leaves saves.
  // Empty: nowhere.
  std::string checkpoints;
  int64_t save_every = 0;
  // Workers come and go, and share a global batch of kGlobalBatch (sync.min_replicas); every
  // replica of a step's view is needed. 0: the job has its workers, and `aggregate` of them.
  int64_t min_replicas = 0;
  // Of the first so many workers the data ends after so many batches.
  uint32_t short_of_data = 0;
  uint64_t batches = 0;
};

inline constexpr float kInitialValue = 8;
inline constexpr float kLearningRate = 0.125f;
inline constexpr int64_t kRowElements = 2;
inline constexpr int64_t kGlobalBatch = 12;

}  // namespace lockstep::sim
