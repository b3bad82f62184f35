// An op of a kind that the model file names by a string (LayerDef.custom): what others add without
// changing this package.
#pragma once

#include <string>
#include <vector>

#include "proto/custom.pb.h"
#include "worker/ops/op.h"

namespace lockstep::worker {

struct CustomOptions : OpOptions {
  CustomKind kind;
  std::string name;           // of the layer
  std::vector<Shape> inputs;  // of one example
  Shape output;
};

}  // namespace lockstep::worker
