#include "worker/ops/pool.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::Status CheckPoolAxes(const PoolOptions& options) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const Window& window = options.window;
  for (const size_t axis : {0, 1}) {
    const int64_t input = axis == 0 ? options.input.height : options.input.width;
    int64_t places = 0;
    for (const int64_t part : {input, window.pad_before[axis], window.pad_after[axis],
                               std::max(window.extent[axis], window.stride[axis])}) {
      places += std::min(part, kMost);
    }
    if (places <= kMost) continue;
    return absl::UnimplementedError(absl::StrCat(
        "op \"pool\" takes fewer than 2^31 places along an axis of the image with its padding and "
        "a window or stride, got a ",
        axis == 0 ? "height" : "width", " of ", input, " with padding of ", window.pad_before[axis],
        " and ", window.pad_after[axis], ", a window of ", window.extent[axis], " and a stride of ",
        window.stride[axis], "; use a smaller image, window or stride"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
