#include "ps/shard/payload_reader.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/stream_copy.h"

namespace lockstep::ps {

void PayloadReader::Copy(const CopyRange& range) {
  LOCKSTEP_CHECK(range.from >= span_begin_);
  uint64_t from = range.from;
  uint64_t left = range.size;
  std::byte* to = range.to;
  // It waits for other gradients of its variable, in memory.
  const bool streams = range.size >= kStreamedBytes;
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
    if (streams) {
      StreamCopy(to, span.data() + skipped, size);
    } else {
      std::memcpy(to, span.data() + skipped, size);
    }
    from += size;
    to += size;
    left -= size;
  }
  if (streams) FlushStreams();
}

}  // namespace lockstep::ps
