// Element types and shapes between their C++ and their protobuf form. The only place that knows
// both.
#pragma once

#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"

namespace lockstep {

DataType ToProto(DType dtype);

// INVALID_ARGUMENT for an unspecified or unknown element type.
absl::StatusOr<DType> FromProto(DataType dtype);

struct VariableType {
  DType dtype = DType::kFloat32;
  Shape shape;
  Shape whole;  // of the variable of which this is a part; `shape` where it is none
};

// INVALID_ARGUMENT naming the variable; a part must have rows and lie inside the whole.
absl::StatusOr<VariableType> TypeOf(const VariableSpec& spec);

}  // namespace lockstep
