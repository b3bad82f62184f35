#include "ps/shard/payload_reader.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tensor/stream_copy.h"

namespace lockstep::ps {

void PayloadReader::Copy(const CopyRange& range) {
  LOCKSTEP_CHECK(range.from >= span_begin_);
  uint64_t from = range.from;
  uint64_t left = range.size;
  std::byte* to = range.to;
  while (left > 0) {
    LOCKSTEP_CHECK(span_ < spans_.size());
    const std::span<const std::byte> span = spans_[span_];
    const uint64_t skipped = from - span_begin_;
    if (skipped >= span.size()) {
      span_begin_ += span.size();
      ++span_;
      continue;
    }
    const uint64_t size = std::min<uint64_t>(left, span.size() - skipped);
    CopyStretch(to, span.data() + skipped, size, range.size);
    from += size;
    to += size;
    left -= size;
  }
  FlushStreams();
}

}  // namespace lockstep::ps
