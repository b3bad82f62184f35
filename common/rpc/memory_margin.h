// MemoryMargin limits the bytes of incomplete messages that a process holds. Callers without
// credentials can send such messages, too.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::rpc {

struct MemoryMargin {
  // The process is short of memory once it has grown by more, with many unfinished calls.
  int64_t growth;
  // The number of these that may then stay. Fewer are not many.
  int64_t unfinished_calls;
};

// `available`: bytes that the process could still take when few calls were unfinished; nullopt:
// unknown. Gives a quarter of them to the growth, and a quarter to the calls that stay.
MemoryMargin MarginOf(std::optional<uint64_t> available);

}  // namespace lockstep::rpc
