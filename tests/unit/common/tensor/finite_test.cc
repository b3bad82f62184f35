#include "common/tensor/finite.h"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "common/tensor/half_width.h"

namespace lockstep {
namespace {

template <typename T>
bool AreFiniteIn(DType type, const std::vector<T>& values) {
  return AreFinite(type, std::as_bytes(std::span(values)));
}

// 37 elements: vectors and a rest.
template <typename T>
void CheckEachPlace(DType type) {
  const float largest = type == DType::kFloat16 ? 65504.0f : 3e38f;
  std::vector<T> values(37, T(largest));
  values[3] = T(-largest);
  values[5] = T(1e-30f);
  CHECK(AreFiniteIn(type, values));
  for (const float wrong :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t place = 0; place < values.size(); ++place) {
      CAPTURE(Name(type), wrong, place);
      std::vector<T> broken = values;
      broken[place] = T(wrong);
      CHECK_FALSE(AreFiniteIn(type, broken));
    }
  }
}

TEST_CASE("one number that is not finite is found wherever it is") {
  CheckEachPlace<double>(DType::kFloat64);
  CheckEachPlace<float>(DType::kFloat32);
  CheckEachPlace<Float16>(DType::kFloat16);
  CheckEachPlace<BFloat16>(DType::kBFloat16);
}

TEST_CASE("numbers of any size are found finite, integers and no numbers at all, too") {
  CHECK(AreFiniteIn<double>(DType::kFloat64, {std::numeric_limits<double>::max(),
                                              std::numeric_limits<double>::denorm_min(), -0.0}));
  CHECK(AreFiniteIn<int64_t>(DType::kInt64, {-1, INT64_MAX, 0x7ff0000000000000}));
  CHECK(AreFiniteIn<int32_t>(DType::kInt32, {-1, 0x7f800000}));
  CHECK(AreFiniteIn<uint8_t>(DType::kUInt8, {255, 0}));
  CHECK(AreFiniteIn<float>(DType::kFloat32, {}));
}

}  // namespace
}  // namespace lockstep
