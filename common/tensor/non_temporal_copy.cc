#include "common/tensor/non_temporal_copy.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if HWY_ARCH_X86
#include <emmintrin.h>
#endif

namespace lockstep {

void NonTemporalCopy(void* to, const void* from, size_t bytes) {
#if HWY_ARCH_X86
  constexpr size_t kLine = 64;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const size_t beyond = reinterpret_cast<uintptr_t>(target) % kLine;
  const size_t head = std::min(bytes, beyond == 0 ? 0 : kLine - beyond);
  std::memcpy(target, source, head);
  size_t done = head;
  for (; done + kLine <= bytes; done += kLine) {
    for (size_t part = done; part < done + kLine; part += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + part)));
    }
  }
  std::memcpy(target + done, source + done, bytes - done);
#else
  std::memcpy(to, from, bytes);
#endif
}

void CopyFragment(void* to, const void* from, size_t bytes, size_t part_bytes) {
  if (part_bytes >= kStreamedBytes) {
    NonTemporalCopy(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void FlushStreams() { hwy::FlushStream(); }

}  // namespace lockstep
