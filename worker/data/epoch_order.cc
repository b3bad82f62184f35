#include "worker/data/epoch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/philox.h"
#include "worker/data/transform/uniform_below.h"

namespace lockstep::worker {
// Fisher-Yates with a window: in place, [i, i + window) of the order is the shuffle buffer when
// place i is drawn.
void FillEpochOrder(uint64_t seed, uint64_t data_epoch, ShuffleWindow window,
                    absl::Span<int64_t> order) {
  std::iota(order.begin(), order.end(), int64_t{0});
  if (window.size <= 1) return;
  const Philox random(seed, "data/order");
  const int64_t size = static_cast<int64_t>(order.size());
  Philox::Block block{};
  for (int64_t i = 0; i < size; ++i) {
    if (i % 2 == 0) block = random.At(i / 2, data_epoch);
    const int64_t draw =
        UniformBelow(std::min(window.size, size - i), block[i % 2 * 2], block[i % 2 * 2 + 1]);
    std::swap(order[i], order[i + draw]);
  }
}

}  // namespace lockstep::worker
