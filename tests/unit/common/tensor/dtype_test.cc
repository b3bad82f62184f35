#include "common/tensor/dtype.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace lockstep {
namespace {

TEST_CASE("Every element type has a size and a name that leads back to it") {
  const std::pair<DType, size_t> sizes[] = {
      {DType::kFloat32, 4}, {DType::kFloat64, 8}, {DType::kFloat16, 2}, {DType::kBFloat16, 2},
      {DType::kInt32, 4},   {DType::kInt64, 8},   {DType::kUInt8, 1}};
  std::set<std::string> names;
  for (const auto& [dtype, size] : sizes) {
    CHECK(SizeOf(dtype) == size);
    CHECK(ParseDType(Name(dtype)) == dtype);
    names.insert(std::string(Name(dtype)));
  }
  CHECK(names.size() == std::size(sizes));
  CHECK_FALSE(ParseDType("float").has_value());
  CHECK_FALSE(ParseDType("").has_value());
  CHECK_FALSE(ParseDType("FLOAT32").has_value());
}

}  // namespace
}  // namespace lockstep
