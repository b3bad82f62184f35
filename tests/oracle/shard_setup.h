// Set-up of replays on real shards: a chief's command, a script's variables and their placement,
// its optimizer, gradients as pushes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "proto/job.pb.h"
#include "proto/ps.pb.h"
#include "ps/shard/shard.h"

namespace lockstep::oracle {

const Command& ChiefOfScript();

ps::WorkerIdentity IdentityOf(uint32_t worker);

// The variables of "initial", dealt out over the shards in turn.
Placement PlacementOf(const nlohmann::json& initial, uint32_t num_shards);

// INVALID_ARGUMENT for an optimizer that no script on shards has.
absl::StatusOr<OptimizerDef> OptimizerOf(const nlohmann::json& script);

// The gradients of one shard's variables as a push. Movable; not thread-safe.
class ScriptPush {
 public:
  ScriptPush(ps::WorkerIdentity worker, PushSeq push_seq, GlobalStep local_step);

  absl::Status Add(const VariableSpec& variable, const std::vector<double>& gradient);
  // Called once.
  absl::Status PushTo(ps::Shard* shard);

 private:
  ps::PushArguments order_;
  std::vector<Tensor> values_;
};

}  // namespace lockstep::oracle
