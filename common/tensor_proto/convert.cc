#include "common/tensor_proto/convert.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"

namespace lockstep {
namespace {

absl::StatusOr<Shape> WholeShape(const RowPart& part, const Shape& shape) {
  if (part.of().empty() || shape.rank() == 0 || part.first_row() < 0 ||
      part.num_rows() < shape.dim(0) || part.first_row() > part.num_rows() - shape.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a part inside the ", part.num_rows(), " rows of \"", part.of(),
                     "\", got shape ", shape.ToString(), " from row ", part.first_row()));
  }
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = part.num_rows();
  return Shape::Create(dims);
}

}  // namespace

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
  absl::StatusOr<Shape> whole = spec.has_part() ? WholeShape(spec.part(), *shape) : *shape;
  if (!whole.ok()) return Annotate(whole.status(), absl::StrCat("variable ", spec.name()));
  return VariableType{*dtype, *std::move(shape), *std::move(whole)};
}

}  // namespace lockstep
