#include "common/model/initializer_rules.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr float kDefaultStddev = 0.1f;

}  // namespace

Initializer Zeros() {
  Initializer initializer;
  initializer.mutable_zeros();
  return initializer;
}

Initializer Ones() {
  Initializer initializer;
  initializer.mutable_constant()->set_value(1);
  return initializer;
}

Initializer Glorot() {
  Initializer initializer;
  initializer.mutable_glorot();
  return initializer;
}

Initializer TruncatedNormal(float stddev) {
  Initializer initializer;
  initializer.mutable_truncated_normal()->set_stddev(stddev);
  return initializer;
}

Initializer Orthogonal() {
  Initializer initializer;
  initializer.mutable_orthogonal();
  return initializer;
}

Initializer UnitForgetBias() {
  Initializer initializer;
  initializer.mutable_unit_forget_bias();
  return initializer;
}

absl::StatusOr<Initializer> CompleteInitializer(absl::string_view field, const Initializer& given,
                                                const Initializer& fallback) {
  switch (given.kind_case()) {
    case Initializer::KIND_NOT_SET:
      return fallback;
    case Initializer::kConstant:
      if (!std::isfinite(given.constant().value())) {
        return absl::InvalidArgumentError(
            absl::StrCat(field, ".constant.value: expected a finite number, got ",
                         given.constant().value(), ". Remedy: write a number such as 0.1"));
      }
      return given;
    case Initializer::kTruncatedNormal: {
      const float stddev = given.truncated_normal().stddev();
      if (!std::isfinite(stddev) || stddev < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(field, ".truncated_normal.stddev: expected a positive number, got ",
                         stddev, ". Remedy: leave it out for ", kDefaultStddev));
      }
      Initializer complete = given;
      if (stddev == 0) complete.mutable_truncated_normal()->set_stddev(kDefaultStddev);
      return complete;
    }
    case Initializer::kGlorot:
    case Initializer::kHe:
    case Initializer::kZeros:
    case Initializer::kOrthogonal:
      return given;
    case Initializer::kUnitForgetBias:
      if (fallback.has_unit_forget_bias()) return given;
      return absl::InvalidArgumentError(
          absl::StrCat(field, ".unit_forget_bias: only the bias of an lstm has a forget gate. ",
                       "Remedy: remove it, or write it as the bias_initializer of an lstm"));
  }
  return given;
}

}  // namespace lockstep
