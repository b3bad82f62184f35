#include "common/tensor_proto/convert.h"

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"

namespace lockstep {

DataType ToProto(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return FLOAT32;
    case DType::kFloat64:
      return FLOAT64;
    case DType::kFloat16:
      return FLOAT16;
    case DType::kBFloat16:
      return BFLOAT16;
    case DType::kInt32:
      return INT32;
    case DType::kInt64:
      return INT64;
    case DType::kUInt8:
      return UINT8;
  }
  return DATA_TYPE_UNSPECIFIED;
}

absl::StatusOr<DType> FromProto(DataType dtype) {
  switch (dtype) {
    case FLOAT32:
      return DType::kFloat32;
    case FLOAT64:
      return DType::kFloat64;
    case FLOAT16:
      return DType::kFloat16;
    case BFLOAT16:
      return DType::kBFloat16;
    case INT32:
      return DType::kInt32;
    case INT64:
      return DType::kInt64;
    case UINT8:
      return DType::kUInt8;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("unknown element type ", static_cast<int>(dtype)));
  }
}

absl::StatusOr<VariableType> TypeOf(const VariableSpec& spec) {
  absl::StatusOr<DType> dtype = FromProto(spec.dtype());
  absl::StatusOr<Shape> shape = Shape::Create(spec.dims());
  for (const absl::Status& status : {dtype.status(), shape.status()}) {
    if (!status.ok()) return Annotate(status, absl::StrCat("variable ", spec.name()));
  }
  return VariableType{*dtype, *std::move(shape)};
}

}  // namespace lockstep
