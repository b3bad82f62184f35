// The endless stream of example numbers: data epoch after data epoch, each in its own order.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/data/epoch_order.h"

namespace lockstep::worker {

// What stands at a position is a function of (seed, position) alone. Not thread-safe: it keeps the
// order of the data epoch last read, so that reading forward is cheap.
class IndexStream {
 public:
  // num_examples > 0.
  IndexStream(uint64_t seed, int64_t num_examples, ShuffleWindow window);

  // The example numbers at positions [position, position + out.size()).
  void Read(int64_t position, absl::Span<int64_t> out);

 private:
  const uint64_t seed_;
  const ShuffleWindow window_;
  std::vector<int64_t> order_;  // of data epoch epoch_
  int64_t epoch_ = -1;
};

}  // namespace lockstep::worker
