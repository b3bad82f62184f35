#include "worker/data/batch_memory.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "worker/data/buffer_memory.h"
#include "worker/data/data_options.h"

namespace lockstep::worker {

absl::Status CheckBatchMemory(const ExampleStore& store, const PipelineOptions& options,
                              int64_t ahead, int64_t orders, const BatchFields& fields) {
  // Slice::Create says what is wrong with them.
  if (options.towers < 1 || options.batch_per_tower < 1) return absl::OkStatus();
  const int64_t elements_per_example = store.input_shape().num_elements();
  const auto examples = CheckedMultiply(options.towers, options.batch_per_tower);
  const auto elements = examples ? CheckedMultiply(*examples, elements_per_example) : std::nullopt;
  if (!elements || *elements > kMostBatchElements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch per tower: expected at most ",
        kMostBatchElements / options.towers / std::max<int64_t>(elements_per_example, 1),
        " examples of shape ", store.input_shape().ToString(), " for ", options.towers,
        " towers, got ", options.batch_per_tower,
        ". Remedy: use a smaller batch or more workers."));
  }
  return CheckRoomFor(NeedOf({.buffers = ahead + 1 + options.copied_batches,
                              .examples = *examples,
                              .bytes_per_example = store.bytes_per_example(),
                              .orders = orders,
                              .examples_in_order = store.num_examples(),
                              .field = fields.batch,
                              .remedy = fields.remedy}));
}

}  // namespace lockstep::worker
