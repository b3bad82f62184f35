// Whether numbers are finite: neither infinite nor NaN. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "common/tensor/dtype.h"

namespace lockstep {

// All of `elements`, whole ones of `type` at any address. Integers always are.
bool AreFinite(DType type, std::span<const std::byte> elements);

}  // namespace lockstep
