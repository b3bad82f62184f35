#include "worker/data/transform/make_stream.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/philox.h"
#include "worker/data/transform/order_streams.h"
#include "worker/data/transform/random_streams.h"

namespace lockstep::worker {
namespace {

// `place` of the step in the list: two shuffles draw differently.
std::unique_ptr<ElementStream> Apply(const TransformStep& step, size_t place, uint64_t seed,
                                     std::unique_ptr<ElementStream> input) {
  switch (step.kind) {
    case TransformStep::Kind::kShard:
      return std::make_unique<ShardStream>(std::move(input), step.size, step.index);
    case TransformStep::Kind::kRepeat:
      return std::make_unique<RepeatStream>(std::move(input), step.size);
    case TransformStep::Kind::kShuffle:
      return std::make_unique<ShuffleStream>(std::move(input), step.size,
                                             Philox(seed, absl::StrCat("data/shuffle/", place)));
    case TransformStep::Kind::kShift:
      return std::make_unique<NumberingStream>(std::move(input));
    case TransformStep::Kind::kBatch:
      return std::make_unique<BatchStream>(std::move(input), step.size, step.drop_remainder);
  }
  LOCKSTEP_CHECK(false);
}

}  // namespace

std::unique_ptr<ElementStream> MakeStream(absl::Span<const TransformStep> steps,
                                          int64_t num_examples, const StreamSeeds& seeds) {
  std::unique_ptr<ElementStream> stream = std::make_unique<RangeStream>(num_examples);
  for (size_t place = 0; place < steps.size(); ++place) {
    const bool is_common = absl::c_any_of(steps.subspan(place), [](const TransformStep& step) {
      return step.kind == TransformStep::Kind::kShard;
    });
    stream = Apply(steps[place], place, is_common ? seeds.job : seeds.replica, std::move(stream));
  }
  return stream;
}

}  // namespace lockstep::worker
