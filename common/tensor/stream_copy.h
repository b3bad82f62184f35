// Copies around the caches, for what is too large to be found in one of them later: memory that is
// written as a whole is then not read first.
#pragma once

#include <cstddef>

namespace lockstep {

// The areas do not overlap. Other threads see what was written after FlushStreams alone.
void StreamCopy(void* to, const void* from, size_t bytes);
void FlushStreams();

}  // namespace lockstep
