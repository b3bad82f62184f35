// CheckpointOrigin is the checkpoint at which a history of a job begins.
//
// An epoch is a history: its steps follow one another. A restore begins the next one at its origin.
// A folder may hold several histories; the last one goes on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"

namespace lockstep {

// The checkpoint that an epoch was restored from. Epoch 0: from none of its folder, but from the
// initial values or from a checkpoint elsewhere.
struct CheckpointOrigin {
  uint64_t epoch = 0;
  int64_t step = 0;

  bool operator==(const CheckpointOrigin&) const = default;
};

nlohmann::json OriginToJson(const CheckpointOrigin& origin);
// DATA_LOSS naming the field, after `where` ("origin.").
absl::Status OriginFromJson(const nlohmann::json& json, const std::string& where,
                            CheckpointOrigin* origin);

}  // namespace lockstep
