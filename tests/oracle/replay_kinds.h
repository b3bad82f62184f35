// One replay per kind of script. Each returns INVALID_ARGUMENT for what we do not have, and throws
// nlohmann::json::exception for a script that lacks a field.
#pragma once

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "tests/oracle/comparison.h"

namespace lockstep::oracle {

// An accumulator of ps/accumulator alone.
absl::Status ReplayAccumulator(const nlohmann::json& script, Comparison* comparison);
// Accumulator, update rule, moving average: a variable's life on a parameter server.
absl::Status ReplayTraining(const nlohmann::json& script, Comparison* comparison);
// Whole shards with the FIFO token policy, both variables on one shard and on two.
absl::Status ReplayCluster(const nlohmann::json& script, Comparison* comparison);
absl::Status ReplaySchedule(const nlohmann::json& script, Comparison* comparison);
// Ftrl alone, dense or sparse, with a power other than the root: to the last bit.
absl::Status ReplayFtrl(const nlohmann::json& script, Comparison* comparison);
// Keras's AdamW alone, dense or sparse.
absl::Status ReplayAdamW(const nlohmann::json& script, Comparison* comparison);
absl::Status ReplayClipping(const nlohmann::json& script, Comparison* comparison);
// The cross-tower ops of worker/collective, one batch: to the last bit.
absl::Status ReplayCrossTower(const nlohmann::json& script, Comparison* comparison);
// LocalSyncParallelOptimizer: loads, and steps of the towers with clipping and batch norm.
absl::Status ReplayLocalSync(const nlohmann::json& script, Comparison* comparison);
// Towers that compute and push by themselves to an asynchronous shard.
absl::Status ReplayAsyncTowers(const nlohmann::json& script, Comparison* comparison);

// Losses that take turns: towers of each loss, and one shard.
absl::Status ReplayGan(const nlohmann::json& script, Comparison* comparison);

}  // namespace lockstep::oracle
