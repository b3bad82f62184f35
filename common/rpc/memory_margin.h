// How many bytes of messages that have not come whole a process can hold: callers without
// credentials send such, too.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::rpc {

struct MemoryMargin {
  // The process is short of memory once it has grown by more, with many unfinished calls.
  int64_t growth;
  // Then so many of these may stay. Fewer are not many.
  int64_t unfinished_calls;
};

// `available`: bytes that the process could still take when few calls were unfinished; nullopt:
// nobody knows. A quarter of them for the growth, and a quarter for the calls that stay.
MemoryMargin MarginOf(std::optional<uint64_t> available);

}  // namespace lockstep::rpc
