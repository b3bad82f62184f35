#include "worker/data/transformed_source.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<TransformedSource>> TransformedSource::Create(
    std::vector<TransformStep> steps, int64_t num_examples, const StreamSeeds& seeds,
    int64_t towers) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t groups, CountGroups(steps, num_examples, towers));
  // A batch has at least one example, and their numbers stay within an int64 up to here.
  const int64_t last_step = groups == kEndless ? kEndless / towers - 1 : groups - 1;
  return std::unique_ptr<TransformedSource>(
      new TransformedSource(std::move(steps), num_examples, seeds, last_step));
}

TransformedSource::TransformedSource(std::vector<TransformStep> steps, int64_t num_examples,
                                     const StreamSeeds& seeds, int64_t last_step)
    : steps_(std::move(steps)),
      num_examples_(num_examples),
      seeds_(seeds),
      last_step_(last_step),
      stream_(MakeStream(steps_, num_examples_, seeds_)) {}

void TransformedSource::ReadGroup(std::vector<Element>* towers) {
  for (Element& batch : *towers) LOCKSTEP_CHECK(stream_->Next(&batch));
  ++next_step_;
}

bool TransformedSource::Read(int64_t step, const std::atomic<bool>& cancelled,
                             std::vector<Element>* towers) {
  if (step < next_step_) {
    stream_ = MakeStream(steps_, num_examples_, seeds_);
    next_step_ = 0;
  }
  while (next_step_ <= step) {
    // A job that goes on from a late step reads all groups before it.
    if (cancelled.load(std::memory_order_relaxed)) return false;
    ReadGroup(towers);
  }
  return true;
}

}  // namespace lockstep::worker
