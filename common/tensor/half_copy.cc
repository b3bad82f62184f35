#include "common/tensor/half_copy.h"

#include "common/base/check.h"
#include "common/tensor/half_width.h"
#include "common/tensor/vector_loop.h"

namespace lockstep {
namespace {

template <typename Half>
void NarrowTo(std::span<const float> from, Half* to) {
  ForEachElement(from.size(), [from = from.data(), to](size_t i) { to[i] = Half(from[i]); });
}

template <typename Half>
void WidenFrom(const Half* from, std::span<float> to) {
  ForEachElement(to.size(),
                 [from, to = to.data()](size_t i) { to[i] = static_cast<float>(from[i]); });
}

}  // namespace

void Narrow(std::span<const float> from, DType type, void* to) {
  LOCKSTEP_CHECK(IsHalfWidth(type));
  if (type == DType::kBFloat16) return NarrowTo(from, static_cast<BFloat16*>(to));
  NarrowTo(from, static_cast<Float16*>(to));
}

void Widen(DType type, const void* from, std::span<float> to) {
  LOCKSTEP_CHECK(IsHalfWidth(type));
  if (type == DType::kBFloat16) return WidenFrom(static_cast<const BFloat16*>(from), to);
  WidenFrom(static_cast<const Float16*>(from), to);
}

}  // namespace lockstep
