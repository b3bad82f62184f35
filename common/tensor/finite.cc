#include "common/tensor/finite.h"

#include <cstdint>
#include <cstring>

#include "common/base/check.h"

namespace lockstep {
namespace {

// `kExponent`: the bits of the exponent, which are all set in what is not finite.
template <typename Bits, Bits kExponent>
bool AllBelow(std::span<const std::byte> elements) {
  LOCKSTEP_CHECK(elements.size() % sizeof(Bits) == 0);
  Bits found = 0;  // without a branch, so that this becomes a vector loop
  for (size_t at = 0; at < elements.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, elements.data() + at, sizeof(Bits));
    found |= static_cast<Bits>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

}  // namespace

bool AreFinite(DType type, std::span<const std::byte> elements) {
  switch (type) {
    case DType::kFloat64:
      return AllBelow<uint64_t, 0x7ff0000000000000>(elements);
    case DType::kFloat32:
      return AllBelow<uint32_t, 0x7f800000>(elements);
    case DType::kBFloat16:
      return AllBelow<uint16_t, 0x7f80>(elements);
    case DType::kFloat16:
      return AllBelow<uint16_t, 0x7c00>(elements);
    case DType::kInt64:
    case DType::kInt32:
    case DType::kUInt8:
      return true;
  }
  LOCKSTEP_CHECK(false);
}

}  // namespace lockstep
