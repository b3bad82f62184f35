// AreFinite checks that numbers are finite: neither infinite nor NaN. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "common/tensor/dtype.h"

namespace lockstep {

// Returns whether all of `elements` are: whole ones of `type` at any address. Integers always are.
bool AreFinite(DType type, std::span<const std::byte> elements);

}  // namespace lockstep
