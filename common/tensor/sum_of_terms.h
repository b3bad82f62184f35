// The sum of a few tensors at one element, for loops that read all of them in one pass.
#pragma once

#include <array>
#include <cstddef>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Further terms are added to such a sum one after another.
inline constexpr size_t kTermsAtATime = 4;

// In T; Stored, the type of the elements, is T or converts to it exactly.
template <typename T, size_t kTerms, typename Stored = T>
class SumOfTerms {
 public:
  static_assert(kTerms >= 1 && kTerms <= kTermsAtATime);
  static constexpr size_t kNumTerms = kTerms;

  explicit SumOfTerms(const std::array<const Stored*, kTerms>& terms) : terms_(terms) {}
  // From element `first` of each on.
  SumOfTerms(absl::Span<const TensorView> terms, size_t first) {
    for (size_t k = 0; k < kTerms; ++k)
      terms_[k] = static_cast<const Stored*>(terms[k].data) + first;
  }

  // In the order of the terms, each sum rounded to T.
  T operator()(size_t i) const {
    T sum = static_cast<T>(terms_[0][i]);
    if constexpr (kTerms > 1) sum = sum + static_cast<T>(terms_[1][i]);
    if constexpr (kTerms > 2) sum = sum + static_cast<T>(terms_[2][i]);
    if constexpr (kTerms > 3) sum = sum + static_cast<T>(terms_[3][i]);
    return sum;
  }

 private:
  std::array<const Stored*, kTerms> terms_;
};

// use(SumOfTerms) of the first kTermsAtATime terms, or of all when they are fewer.
template <typename T, typename Stored = T, typename Use>
void WithSumOfTerms(absl::Span<const TensorView> terms, size_t first, Use use) {
  LOCKSTEP_CHECK(!terms.empty());
  switch (terms.size()) {
    case 1:
      return use(SumOfTerms<T, 1, Stored>(terms, first));
    case 2:
      return use(SumOfTerms<T, 2, Stored>(terms, first));
    case 3:
      return use(SumOfTerms<T, 3, Stored>(terms, first));
    default:
      return use(SumOfTerms<T, 4, Stored>(terms, first));
  }
}

}  // namespace lockstep
