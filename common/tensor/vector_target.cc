#include "common/tensor/vector_target.h"

#include <hwy/targets.h>

#include <algorithm>
#include <atomic>

namespace lockstep {
namespace {

std::atomic<VectorTarget>& Chosen() {
  static std::atomic<VectorTarget> chosen = SupportedVectorTargets().back();
  return chosen;
}

}  // namespace

absl::string_view Name(VectorTarget target) {
  switch (target) {
    case VectorTarget::kAvx2:
      return "AVX2";
    case VectorTarget::kAvx512:
      return "AVX-512";
    case VectorTarget::kBaseline:
      break;
  }
  return "baseline";
}

std::vector<VectorTarget> SupportedVectorTargets() {
  std::vector<VectorTarget> targets = {VectorTarget::kBaseline};
#if HWY_ARCH_X86
  const int64_t supported = hwy::SupportedTargets();
  if ((supported & HWY_AVX2) != 0) targets.push_back(VectorTarget::kAvx2);
  if ((supported & HWY_AVX3) != 0) targets.push_back(VectorTarget::kAvx512);
#endif
  return targets;
}

VectorTarget ChosenVectorTarget() { return Chosen().load(std::memory_order_relaxed); }

void LimitVectorTarget(VectorTarget widest) {
  Chosen().store(std::min(widest, SupportedVectorTargets().back()), std::memory_order_relaxed);
}

}  // namespace lockstep
