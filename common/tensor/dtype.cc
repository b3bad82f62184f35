#include "common/tensor/dtype.h"

#include "common/base/check.h"

namespace lockstep {
namespace {

struct Row {
  DType dtype;
  size_t size;
  absl::string_view name;
};

constexpr Row kRows[] = {
    {DType::kFloat32, 4, "float32"}, {DType::kFloat64, 8, "float64"},
    {DType::kFloat16, 2, "float16"}, {DType::kBFloat16, 2, "bfloat16"},
    {DType::kInt32, 4, "int32"},     {DType::kInt64, 8, "int64"},
    {DType::kUInt8, 1, "uint8"},
};

const Row& RowOf(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  LOCKSTEP_CHECK(false && "a DType outside the enumeration");
  return kRows[0];
}

}  // namespace

size_t SizeOf(DType dtype) { return RowOf(dtype).size; }

absl::string_view Name(DType dtype) { return RowOf(dtype).name; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace lockstep
