#include "tests/oracle/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace lockstep::oracle {
namespace {

double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1e-6;
    case DType::kFloat64:
      return 1e-12;
    default:
      LOCKSTEP_CHECK(dtype == DType::kFloat16);
      return 0;
  }
}

constexpr double kTrainedTolerance = 5e-6;

double LargestMagnitude(const std::vector<double>& elements) {
  double largest = 0;
  for (const double element : elements) {
    if (std::isfinite(element)) largest = std::max(largest, std::abs(element));
  }
  return largest;
}

double ShareOf(double tolerance, double expected, double got) {
  if (expected == got || (std::isnan(expected) && std::isnan(got))) return 0;
  const double share = std::abs(expected - got) / tolerance;
  return std::isnan(share) ? std::numeric_limits<double>::infinity() : share;
}

std::string NumberText(double number) { return absl::StrFormat("%.9g", number); }

}  // namespace

void Comparison::Equal(const std::string& what, const nlohmann::json& expected,
                       const nlohmann::json& got) {
  if (expected == got) return;
  differences_.push_back({entry_, what, expected.dump(), got.dump()});
}

void Comparison::Near(const std::string& what, DType dtype, const std::vector<double>& expected,
                      const std::vector<double>& got) {
  Within(ToleranceOf(dtype) * LargestMagnitude(expected), what, expected, got);
}

void Comparison::NearSoFar(const std::string& what, const std::vector<double>& expected,
                           const std::vector<double>& got) {
  double& largest = largest_[what];
  largest = std::max(largest, LargestMagnitude(expected));
  Within(kTrainedTolerance * largest, what, expected, got);
}

void Comparison::Same(const std::string& what, const std::vector<double>& expected,
                      const std::vector<double>& got) {
  Within(0, what, expected, got);
}

void Comparison::Within(double tolerance, const std::string& what,
                        const std::vector<double>& expected, const std::vector<double>& got) {
  if (expected.size() != got.size()) {
    return Equal(absl::StrCat("elements of ", what), expected.size(), got.size());
  }
  double worst = 0;
  size_t farthest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double share = ShareOf(tolerance, expected[i], got[i]);
    if (share <= worst) continue;
    worst = share;
    farthest = i;
  }
  worst_share_ = std::max(worst_share_, worst);
  if (worst <= 1) return;
  differences_.push_back(
      {entry_, absl::StrCat(what, "[", farthest, "]"), NumberText(expected[farthest]),
       absl::StrCat(NumberText(got[farthest]), " (", NumberText(worst), " times the tolerance)")});
}

}  // namespace lockstep::oracle
