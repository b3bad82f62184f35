// Sums in float32 of what is narrower, against sums of the same numbers in float32.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "common/tensor/element_math.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/vector_target.h"

namespace lockstep {
namespace {

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

// Random numbers of a type, and the same as float32.
struct Term {
  Term(DType dtype, int64_t count, std::mt19937* random)
      : value(dtype, Shape({count})), wide(DType::kFloat32, Shape({count})) {
    std::uniform_real_distribution<float> ordinary(-100, 100);
    for (float& element : wide.as<float>()) element = ordinary(*random);
    if (dtype == DType::kFloat32) {
      Copy(wide.view(), value.view());
    } else {
      Narrow(wide.as<float>(), dtype, value.data());
      Widen(dtype, value.data(), wide.as<float>());
    }
  }
  Tensor value;
  Tensor wide;
};

void CheckSums(const std::vector<DType>& types, int64_t count, std::mt19937* random) {
  std::vector<Term> terms;
  for (const DType type : types) terms.emplace_back(type, count, random);
  std::vector<TensorView> narrow, wide;
  for (const Term& term : terms) {
    narrow.push_back(term.value.view());
    wide.push_back(term.wide.view());
  }
  const size_t first = static_cast<size_t>(count) / 3;
  const ElementRange range{first, static_cast<size_t>(count) - first};
  for (const int divisor : {1, 3}) {
    for (const VectorTarget target : SupportedVectorTargets()) {
      LimitVectorTarget(target);
      CAPTURE(Name(target), count, divisor, types.size());
      std::vector<float> expected(range.count), got(range.count);
      SumAndDivide(wide, divisor, range, expected.data());
      SumWidenedAndDivide(narrow, divisor, range, got.data());
      CHECK(std::memcmp(got.data(), expected.data(), range.count * sizeof(float)) == 0);
    }
  }
  LimitVectorTarget(VectorTarget::kAvx512);
}

TEST_CASE("narrow terms give the bits of their sum in float32, however many there are") {
  std::mt19937 random(5);
  for (const DType type : kTypes) {
    for (size_t num_terms = 1; num_terms <= 7; ++num_terms) {
      for (const int64_t count : {1, 17, 1000}) {
        CheckSums(std::vector(num_terms, type), count, &random);
      }
    }
  }
}

TEST_CASE("terms of several types are summed in their order") {
  std::mt19937 random(6);
  for (int round = 0; round < 30; ++round) {
    std::vector<DType> types(2 + random() % 6);
    for (DType& type : types) type = kTypes[random() % 3];
    CheckSums(types, 129, &random);
  }
}

}  // namespace
}  // namespace lockstep
