#include "common/update/byte_ranges.h"

#include <algorithm>

namespace lockstep {

ByteRanges::List ByteRanges::Claim(uint64_t begin, uint64_t end) {
  List fresh;
  if (begin >= end) return fresh;
  // The ranges that overlap or touch [begin, end) become one.
  const auto first = std::lower_bound(claimed_.begin(), claimed_.end(), begin,
                                      [](const ByteRange& r, uint64_t at) { return r.end < at; });
  auto last = first;
  ByteRange merged{begin, end};
  uint64_t cursor = begin;
  for (; last != claimed_.end() && last->begin <= end; ++last) {
    if (cursor < last->begin) fresh.push_back({cursor, last->begin});
    cursor = std::max(cursor, last->end);
    merged.begin = std::min(merged.begin, last->begin);
    merged.end = std::max(merged.end, last->end);
  }
  if (cursor < end) fresh.push_back({cursor, end});
  claimed_.insert(claimed_.erase(first, last), merged);
  return fresh;
}

bool ByteRanges::Covers(uint64_t begin, uint64_t end) const {
  return begin >= end || std::ranges::any_of(claimed_, [&](const ByteRange& range) {
           return range.begin <= begin && end <= range.end;
         });
}

uint64_t ByteRanges::FirstGap(uint64_t begin, uint64_t end) const {
  const auto around = std::ranges::find_if(claimed_, [begin](const ByteRange& range) {
    return range.begin <= begin && begin < range.end;
  });
  return around == claimed_.end() ? begin : std::min(around->end, end);
}

}  // namespace lockstep
