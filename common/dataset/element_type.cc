#include "common/dataset/element_type.h"

#include "common/base/check.h"

namespace lockstep {

size_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kUInt8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kFloat64:
      return 8;
  }
  LOCKSTEP_CHECK(false);
}

absl::string_view Name(ElementType type) {
  switch (type) {
    case ElementType::kUInt8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  LOCKSTEP_CHECK(false);
}

}  // namespace lockstep
