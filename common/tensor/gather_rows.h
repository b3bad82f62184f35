// Rows from all over a large tensor, one after the other: what a lookup in a table costs is waiting
// for memory, so the rows ahead are asked for while one is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// Copies rows of `row_bytes` bytes of `table`, in any order and any number of times. They are rows
// of the table, and `to` has room for them.
void GatherRows(const std::byte* table, size_t row_bytes, std::span<const int64_t> rows,
                std::byte* to);

// Asks for these rows, to be written too.
void PrefetchRows(std::byte* table, size_t row_bytes, std::span<const int64_t> rows);

}  // namespace lockstep
