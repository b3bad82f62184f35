// A variable as a placement names it.
#pragma once

#include <cstdint>
#include <string>

#include "proto/tensor.pb.h"

namespace lockstep {

// float32, of one dimension, constant at first.
inline VariableSpec PlacedVariable(uint32_t id, const std::string& name, int64_t elements,
                                   uint32_t shard, bool trainable, float initial_value) {
  VariableSpec spec;
  spec.set_id(id);
  spec.set_name(name);
  spec.set_dtype(FLOAT32);
  spec.add_dims(elements);
  spec.set_shard(shard);
  spec.set_trainable(trainable);
  spec.mutable_initializer()->mutable_constant()->set_value(initial_value);
  return spec;
}

}  // namespace lockstep
