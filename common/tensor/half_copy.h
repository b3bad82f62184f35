// Copies between float32 and the types of half its width.
#pragma once

#include <cstddef>
#include <span>

#include "common/tensor/dtype.h"

namespace lockstep {

// Rounds to nearest, ties to even: the same bits from every machine. NaN stays NaN; what is too
// large for float16 becomes infinite. `to` has room for from.size() elements of `type`, which is
// float16 or bfloat16 (CHECK), and is aligned to it.
void Narrow(std::span<const float> from, DType type, void* to);

// Exact. `from` has to.size() elements of `type`, float16 or bfloat16 (CHECK), and is aligned to
// it.
void Widen(DType type, const void* from, std::span<float> to);

}  // namespace lockstep
