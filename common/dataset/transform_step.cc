#include "common/dataset/transform_step.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

using Kind = TransformStep::Kind;

int64_t CountAfter(const TransformStep& step, int64_t count) {
  switch (step.kind) {
    case Kind::kShard:
      if (count == kEndless) return count;
      return count / step.size + (step.index < count % step.size ? 1 : 0);
    case Kind::kRepeat:
      if (count == 0) return 0;
      if (step.size == 0) return kEndless;
      return CheckedMultiply(count, step.size).value_or(kEndless);
    case Kind::kBatch:
      return count == kEndless ? count : count / step.size;
    case Kind::kShuffle:
    case Kind::kShift:
      break;
  }
  return count;
}

}  // namespace

absl::StatusOr<int64_t> CountGroups(absl::Span<const TransformStep> steps, int64_t examples,
                                    int64_t towers) {
  if (absl::c_count_if(steps, [](const auto& step) { return step.kind == Kind::kBatch; }) != 1) {
    return absl::InvalidArgumentError(
        "data.transform: expected batch once. Remedy: write transform { batch {} } once.");
  }
  int64_t count = examples;
  for (const TransformStep& step : steps) {
    const bool has_remainder =
        step.kind == Kind::kBatch && count != kEndless && count % step.size != 0;
    if (has_remainder && !step.drop_remainder) {
      return absl::InvalidArgumentError(
          absl::StrCat("data.transform: batch: expected whole batches of ", step.size, ", got ",
                       count, " examples, so that the last one has ", count % step.size,
                       ". Remedy: set drop_remainder: true, or put repeat {} before batch."));
    }
    count = CountAfter(step, count);
  }
  if (count == kEndless) return count;
  if (count >= towers) return count / towers;
  return absl::InvalidArgumentError(absl::StrCat(
      "data.transform: expected at least ", towers, " batches, one for each tower, got ", count,
      " of ", examples, " examples. Remedy: use a smaller batch, or put repeat {} before batch."));
}

absl::StatusOr<GroupRate> CountGroupsPerPass(absl::Span<const TransformStep> steps,
                                             int64_t examples, int64_t towers) {
  LOCKSTEP_RETURN_IF_ERROR(CountGroups(steps, examples, towers).status());
  int64_t count =
      examples;  // of the passes so far; behind a repeat without an end, of these passes
  GroupRate rate{.passes = 1};
  for (const TransformStep& step : steps) {
    if (rate.is_endless) {
      // Shards and batches reach over the ends of passes, so that nothing is left out.
      if (step.kind == Kind::kShard || step.kind == Kind::kBatch) rate.passes *= step.size;
      continue;
    }
    const int64_t after = CountAfter(step, count);
    rate.is_endless = after == kEndless;
    if (rate.is_endless) continue;
    if (step.kind == Kind::kRepeat) rate.passes *= step.size;
    count = after;
  }
  rate.groups = static_cast<double>(rate.is_endless ? count : count / towers);
  if (rate.is_endless) rate.passes *= static_cast<double>(towers);
  return rate;
}

}  // namespace lockstep
