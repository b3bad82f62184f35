#include "tests/oracle/fields.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::oracle {

absl::StatusOr<DType> DTypeIn(const nlohmann::json& script) {
  const std::string name = script.at("dtype");
  const std::optional<DType> dtype = ParseDType(name);
  const bool is_known =
      dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
  if (is_known) return *dtype;
  return absl::InvalidArgumentError(
      absl::StrCat("dtype: expected float16, float32 or float64, got \"", name, "\""));
}

absl::StatusOr<Shape> ShapeIn(const nlohmann::json& from, const std::string& field) {
  const std::vector<int64_t> dims = from.at(field);
  return Shape::Create(dims);
}

}  // namespace lockstep::oracle
