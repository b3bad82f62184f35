// InferredLayer is the output shape and the variables of a layer, from the shapes of its inputs.
#pragma once

#include <string>
#include <vector>

#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"

namespace lockstep {

struct LayerVariable {
  std::string kind;  // "kernel"
  Shape shape;
  Initializer initializer;
  bool trainable = true;
  bool sparse = false;
};

struct InferredLayer {
  Shape output;
  std::vector<LayerVariable> variables;
};

}  // namespace lockstep
