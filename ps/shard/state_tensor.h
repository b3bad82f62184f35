// The tensors that are the state of a shard's variables: values and slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"

namespace lockstep::ps {

struct StateTensor {
  size_t variable = 0;         // in the shard's order
  std::optional<size_t> slot;  // of the variable's rule; nullopt: the value
  VariableId id;               // as messages name the variable
  std::string slot_name;       // as messages name the slot; empty: the value
  std::string name;            // "conv1/kernel/momentum", for errors
  uint64_t num_bytes = 0;
};

// A range of bytes of one of the tensors.
struct StateRange {
  size_t tensor = 0;  // in a list of them
  uint64_t offset = 0;
  uint64_t size = 0;

  friend bool operator==(const StateRange&, const StateRange&) = default;
};

}  // namespace lockstep::ps
