#include "common/model/initial_value.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

Initializer TruncatedNormal(float stddev) {
  Initializer initializer;
  initializer.mutable_truncated_normal()->set_stddev(stddev);
  return initializer;
}

Initializer Glorot() {
  Initializer initializer;
  initializer.mutable_glorot();
  return initializer;
}

Initializer He() {
  Initializer initializer;
  initializer.mutable_he();
  return initializer;
}

std::vector<float> Values(const Initializer& initializer, uint64_t seed, const char* name,
                          Shape shape) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  FillInitialValue(initializer, seed, name, tensor.view());
  const auto values = std::as_const(tensor).as<float>();
  return {values.begin(), values.end()};
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double largest = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  for (float v : values) {
    moments.mean += v / values.size();
    moments.largest = std::max<double>(moments.largest, std::abs(v));
  }
  for (float v : values) moments.variance += (v - moments.mean) * (v - moments.mean);
  moments.variance /= values.size();
  return moments;
}

TEST_CASE("Element i does not depend on how many elements there are") {
  for (const Initializer& initializer : {TruncatedNormal(1)}) {
    const auto few = Values(initializer, 7, "fc/kernel", Shape({10}));
    const auto many = Values(initializer, 7, "fc/kernel", Shape({1000}));
    CHECK(std::equal(few.begin(), few.end(), many.begin()));
  }
  // Glorot's scale is a function of the shape, its draws are not.
  const auto few = Values(Glorot(), 7, "fc/kernel", Shape({4, 4}));
  const auto many = Values(Glorot(), 7, "fc/kernel", Shape({4, 16}));
  for (size_t i = 0; i < few.size(); ++i) {
    CHECK(few[i] / std::sqrt(6.0 / 8) == Approx(many[i] / std::sqrt(6.0 / 20)));
  }
}

TEST_CASE("The same seed and name give the same values; others give others") {
  for (const Initializer& initializer : {TruncatedNormal(1), Glorot(), He()}) {
    const auto values = Values(initializer, 1, "a/kernel", Shape({16, 16}));
    CHECK(values == Values(initializer, 1, "a/kernel", Shape({16, 16})));
    CHECK(values != Values(initializer, 2, "a/kernel", Shape({16, 16})));
    CHECK(values != Values(initializer, 1, "b/kernel", Shape({16, 16})));
    // Not the same stream shifted by one either.
    const auto other = Values(initializer, 1, "b/kernel", Shape({16, 16}));
    CHECK(std::search(values.begin(), values.end(), other.begin(), other.begin() + 3) ==
          values.end());
  }
}

TEST_CASE("A truncated normal stays within two standard deviations and has its moments") {
  const Moments moments = MomentsOf(Values(TruncatedNormal(0.5f), 3, "w", Shape({200000})));
  CHECK(moments.largest <= 1.0);
  CHECK(moments.largest > 0.99);
  CHECK(std::abs(moments.mean) < 0.005);
  // Variance of the standard normal cut at +-2: 1 - 2*2*phi(2)/(2*Phi(2)-1) = 0.773741.
  CHECK(moments.variance == Approx(0.25 * 0.773741).epsilon(0.01));
}

TEST_CASE("Glorot is uniform within its limit") {
  // 5x5 convolution from 8 to 12 channels: fans 200 and 300.
  const Moments moments = MomentsOf(Values(Glorot(), 3, "w", Shape({5, 5, 8, 12})));
  const double limit = std::sqrt(6.0 / 500.0);
  CHECK(moments.largest <= limit);
  CHECK(moments.largest > 0.99 * limit);
  CHECK(std::abs(moments.mean) < 0.1 * limit);
  CHECK(moments.variance == Approx(limit * limit / 3).epsilon(0.05));
}

TEST_CASE("He has variance two over fan in") {
  const Moments moments = MomentsOf(Values(He(), 3, "w", Shape({3, 3, 32, 64})));
  CHECK(moments.variance == Approx(2.0 / (9 * 32)).epsilon(0.03));
}

TEST_CASE("Constants fill every element") {
  Initializer constant;
  constant.mutable_constant()->set_value(2.5f);
  CHECK(Values(constant, 0, "b", Shape({3})) == std::vector<float>{2.5f, 2.5f, 2.5f});
  Initializer zeros;
  zeros.mutable_zeros()->set_value(9);  // ignored, as documented
  CHECK(Values(zeros, 0, "b", Shape({2})) == std::vector<float>{0, 0});
  CHECK(Values(Initializer(), 0, "b", Shape({2})) == std::vector<float>{0, 0});
}

TEST_CASE("A float64 variable holds the same draws as a float32 one") {
  Tensor wide(DType::kFloat64, Shape({100}));
  FillInitialValue(TruncatedNormal(1), 5, "w", wide.view());
  const auto narrow = Values(TruncatedNormal(1), 5, "w", Shape({100}));
  for (int i = 0; i < 100; ++i) {
    CHECK(narrow[i] == static_cast<float>(std::as_const(wide).as<double>()[i]));
  }
}

TEST_CASE("The fewer of an orthogonal matrix's rows and columns are orthonormal") {
  Initializer orthogonal;
  orthogonal.mutable_orthogonal();
  for (const auto& [rows, columns] : {std::pair(6, 24), {24, 6}, {7, 7}, {1, 5}, {5, 1}}) {
    CAPTURE(rows, columns);
    const auto values = Values(orthogonal, 3, "r", Shape({rows, columns}));
    const int count = std::min(rows, columns);
    const int length = std::max(rows, columns);
    const auto at = [&](int vector, int i) {
      return rows <= columns ? values[vector * columns + i] : values[i * columns + vector];
    };
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b <= a; ++b) {
        double product = 0;
        for (int i = 0; i < length; ++i) product += double{at(a, i)} * at(b, i);
        CHECK(product == Approx(a == b ? 1 : 0).margin(1e-6));
      }
    }
  }
  CHECK(Values(orthogonal, 3, "r", Shape({4, 4})) != Values(orthogonal, 4, "r", Shape({4, 4})));
}

TEST_CASE("Rows of an orthogonal matrix are those of the whole, wherever they are made") {
  Initializer orthogonal;
  orthogonal.mutable_orthogonal();
  const auto whole = Values(orthogonal, 3, "r", Shape({6, 8}));
  Tensor part(DType::kFloat32, Shape({2, 8}));
  FillInitialRows(orthogonal, 3, "r", Shape({6, 8}), 3, part.view());
  for (int i = 0; i < 16; ++i) CHECK(std::as_const(part).as<float>()[i] == whole[24 + i]);
}

TEST_CASE("The bias of an LSTM begins with forget gates that keep") {
  Initializer bias;
  bias.mutable_unit_forget_bias();
  CHECK(Values(bias, 0, "b", Shape({8})) == std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("Scalars, vectors and empty shapes have fans") {
  CHECK(Values(Glorot(), 5, "s", Shape()).size() == 1);
  CHECK(Values(He(), 5, "v", Shape({8})).size() == 8);
  CHECK(Values(He(), 5, "e", Shape({0, 4})).empty());
  Initializer orthogonal;
  orthogonal.mutable_orthogonal();
  CHECK(Values(orthogonal, 5, "s", Shape()).size() == 1);
  CHECK(Values(orthogonal, 5, "e", Shape({4, 0})).empty());
}

}  // namespace
}  // namespace lockstep
