#include "common/optimizer_proto/clipping_of.h"

namespace lockstep {

ClippingRule ClippingOf(const Clipping& clipping) {
  switch (clipping.kind_case()) {
    case Clipping::kValue:
      return {ClippingKind::kValue, clipping.value()};
    case Clipping::kNorm:
      return {ClippingKind::kNorm, clipping.norm()};
    case Clipping::kGlobalNorm:
      return {ClippingKind::kGlobalNorm, clipping.global_norm()};
    case Clipping::KIND_NOT_SET:
      break;
  }
  return {};
}

}  // namespace lockstep
