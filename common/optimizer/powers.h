// x^y for the elements of a tensor, with the bits that TensorFlow 2.21's CPU kernels give (x86-64,
// the wheels of PyPI; held to by the scripts of kind "ftrl" in tests/oracle).
//
// float32: Eigen takes eight elements at a time as exp2(y * log2(x)), with the logarithm and its
// product with y in double-word arithmetic and without fused multiply-adds (generic_pow in
// Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h; the double-word operations are those of
// J.-M. Muller, "Elementary Functions", 3rd edition). That is within 3 ulp of x^y, in every fourth
// element not what libm gives. The last count % 8 elements are libm's.
// float64: libm's. Eigen's differs by ulps, thousands of which are within tests/oracle's tolerance.
#pragma once

#include "absl/types/span.h"

namespace lockstep {

// Elements that TensorFlow takes at a time.
constexpr size_t kPowersAtATime = 8;

// powers[i] = bases[i]^exponent; as many of the one as of the other (CHECK), not the same memory.
// `bases` is a whole tensor, a row where TensorFlow's kernel works by rows, or a part of them that
// begins and, unless it is the last, ends at a multiple of kPowersAtATime. bases >= 0: of what is
// negative the power is NaN. exponent >= 0.
void PowersOf(absl::Span<const float> bases, float exponent, absl::Span<float> powers);
void PowersOf(absl::Span<const double> bases, double exponent, absl::Span<double> powers);

}  // namespace lockstep
