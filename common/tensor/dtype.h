// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace lockstep {

enum class DType : uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kUInt8 = 7
};

// Bytes of one element.
size_t SizeOf(DType dtype);
// "float32", "bfloat16", ...
absl::string_view Name(DType dtype);
// The inverse of Name; nullopt for an unknown name.
std::optional<DType> ParseDType(absl::string_view name);

}  // namespace lockstep
