// Non-temporal copies, for what is too large to be found in a cache later: memory that is written
// as a whole is then not read first.
#pragma once

#include <cstddef>

namespace lockstep {

// Parts of tensors that are at least as large are worth it: the nearer caches do not keep them
// until the whole is there.
inline constexpr size_t kStreamedBytes = size_t{256} << 10;

// The areas do not overlap. Other threads see what was written after FlushStreams alone.
void NonTemporalCopy(void* to, const void* from, size_t bytes);
// Copies one fragment of a buffer of `part_bytes`: non-temporal from kStreamedBytes on.
void CopyFragment(void* to, const void* from, size_t bytes, size_t part_bytes);
void FlushStreams();

}  // namespace lockstep
