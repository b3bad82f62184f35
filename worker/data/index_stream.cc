#include "worker/data/index_stream.h"

#include <algorithm>

#include "common/base/check.h"

namespace lockstep::worker {

IndexStream::IndexStream(uint64_t seed, int64_t num_examples, ShuffleWindow window)
    : seed_(seed), window_(window), order_(num_examples) {
  LOCKSTEP_CHECK(num_examples > 0);
}

void IndexStream::Read(int64_t position, absl::Span<int64_t> out) {
  const int64_t num_examples = static_cast<int64_t>(order_.size());
  while (!out.empty()) {
    const int64_t epoch = position / num_examples;
    if (epoch != epoch_) {
      FillEpochOrder(seed_, static_cast<uint64_t>(epoch), window_, absl::MakeSpan(order_));
      epoch_ = epoch;
    }
    const auto rest = absl::MakeConstSpan(order_).subspan(position % num_examples, out.size());
    std::copy(rest.begin(), rest.end(), out.begin());
    position += static_cast<int64_t>(rest.size());
    out.remove_prefix(rest.size());
  }
}

}  // namespace lockstep::worker
