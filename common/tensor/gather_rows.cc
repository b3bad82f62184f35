#include "common/tensor/gather_rows.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

constexpr size_t kLine = 64;
// Of a wider row the CPU asks for the rest by itself.
constexpr size_t kMostAsked = 8 * kLine;
// As many rows as come while one is copied and the CPU can wait for.
constexpr size_t kAhead = 8;

}  // namespace

void GatherRows(const std::byte* table, size_t row_bytes, std::span<const int64_t> rows,
                std::byte* to) {
  if (row_bytes == 0) return;
  const size_t asked = std::min(row_bytes, kMostAsked);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) {
      const std::byte* const ahead = table + rows[i + kAhead] * row_bytes;
      for (size_t at = 0; at < asked; at += kLine) __builtin_prefetch(ahead + at);
    }
    std::memcpy(to, table + rows[i] * row_bytes, row_bytes);
    to += row_bytes;
  }
}

void PrefetchRows(std::byte* table, size_t row_bytes, std::span<const int64_t> rows) {
  const size_t asked = std::min(row_bytes, kMostAsked);
  for (const int64_t row : rows) {
    const std::byte* const ahead = table + row * row_bytes;
    for (size_t at = 0; at < asked; at += kLine) __builtin_prefetch(ahead + at, /*rw=*/1);
  }
}

}  // namespace lockstep
