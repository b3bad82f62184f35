#include "worker/data/data_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::StatusOr<ShuffleWindow> WindowOf(const DataDef& data, int64_t num_examples) {
  if (data.shuffle_buffer() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.shuffle_buffer: expected 0 or more examples, got ",
                     data.shuffle_buffer(), ". Remedy: leave it out for a full permutation."));
  }
  if (data.no_shuffle() && data.shuffle_buffer() > 0) {
    return absl::InvalidArgumentError(
        "data: expected at most one of no_shuffle and shuffle_buffer, got both. Remedy: remove one "
        "of them.");
  }
  if (data.no_shuffle()) return ShuffleWindow{1};
  return ShuffleWindow{data.shuffle_buffer() == 0 ? num_examples : data.shuffle_buffer()};
}

absl::Status CheckShift(int64_t most, const ExampleStore& store) {
  if (most == 0) return absl::OkStatus();
  if (!store.is_image()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.augmentation.shift: expected images [height,width] or [height,width,channels], got "
        "examples of shape ",
        store.input_shape().ToString(), ". Remedy: remove the augmentation."));
  }
  const int64_t side = std::min(store.input_shape().dim(0), store.input_shape().dim(1));
  if (most > 0 && most < side) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "data.augmentation.shift: expected 0 to ", side - 1, " pixels for images of shape ",
      store.input_shape().ToString(), ", got ", most, ". Remedy: shift by less."));
}

}  // namespace lockstep::worker
