// Loops over elements in the vector instructions of this machine. The loop is compiled once for
// each target; the element's formula is written once, in plain C++, and becomes part of all of
// them. No target has fused multiply-adds, so all give the same bits.
#pragma once

#include <hwy/base.h>

#include <cstddef>

#include "common/tensor/vector_target.h"

// For functions that hold such a loop: everything that the loop calls becomes part of it, and with
// it is compiled for the loop's target.
#define LOCKSTEP_VECTOR_LOOP __attribute__((flatten, noinline))

// The compiler is told that no element depends on another: it cannot know that what is written lies
// either beside what is read or exactly upon it.
#ifdef __clang__
#define LOCKSTEP_INDEPENDENT_ELEMENTS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOCKSTEP_INDEPENDENT_ELEMENTS _Pragma("GCC ivdep")
#endif

namespace lockstep {
namespace vector_loop {

template <typename Body>
LOCKSTEP_VECTOR_LOOP void Baseline(size_t count, Body body) {
  LOCKSTEP_INDEPENDENT_ELEMENTS
  for (size_t i = 0; i < count; ++i) body(i);
}

#if HWY_ARCH_X86

// f16c: half precision to single and back.
template <typename Body>
__attribute__((target("avx2,f16c"))) LOCKSTEP_VECTOR_LOOP void Avx2(size_t count, Body body) {
  LOCKSTEP_INDEPENDENT_ELEMENTS
  for (size_t i = 0; i < count; ++i) body(i);
}

template <typename Body>
__attribute__((target("avx2,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")))
LOCKSTEP_VECTOR_LOOP void
Avx512(size_t count, Body body) {
  LOCKSTEP_INDEPENDENT_ELEMENTS
  for (size_t i = 0; i < count; ++i) body(i);
}

#endif

}  // namespace vector_loop

// body(i) for each element; no element may depend on another. What the body needs it holds by
// value, or the loop would read it anew for every element.
template <typename Body>
void ForEachElement(size_t count, Body body) {
#if HWY_ARCH_X86
  switch (ChosenVectorTarget()) {
    case VectorTarget::kAvx512:
      return vector_loop::Avx512(count, body);
    case VectorTarget::kAvx2:
      return vector_loop::Avx2(count, body);
    case VectorTarget::kBaseline:
      break;
  }
#endif
  vector_loop::Baseline(count, body);
}

}  // namespace lockstep
