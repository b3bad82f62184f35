// Element types that data files hold: those of the IDX format.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

enum class ElementType : uint8_t { kUInt8, kInt8, kInt16, kInt32, kFloat32, kFloat64 };

// Bytes of one element.
size_t SizeOf(ElementType type);
// "uint8", "float32", ...
absl::string_view Name(ElementType type);

}  // namespace lockstep
