// The transformations of a worker's examples, and how many batches they leave.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep {

// Takes elements, one after the other, and gives elements: examples, and batches of them behind
// kBatch. Steps that change neither order nor number are not here.
struct TransformStep {
  enum class Kind {
    kShard,    // of `size` shards, the elements index, index + size, ... of an iteration
    kRepeat,   // `size` iterations over the input; 0: for ever
    kShuffle,  // each element is drawn from a buffer of `size`; another order in each iteration
    kShift,    // numbers the examples as they pass, for the random shift of each
    kBatch,    // `size` examples each
  };
  Kind kind = Kind::kShard;
  int64_t size = 0;
  int64_t index = 0;            // kShard
  bool drop_remainder = false;  // kBatch: leaves out a batch of fewer examples
};

inline constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

// How many groups of `towers` batches come of `examples` examples; kEndless where a repeat has no
// end. A last group of fewer is not counted. INVALID_ARGUMENT naming the remedy where a batch has
// fewer examples than the others, where not even one group comes, or without one kBatch.
absl::StatusOr<int64_t> CountGroups(absl::Span<const TransformStep> steps, int64_t examples,
                                    int64_t towers);

// So many groups come of so many passes over the examples. Both are whole numbers.
struct GroupRate {
  double groups = 0;
  double passes = 0;
  bool is_endless = false;  // this is then an average over all passes
};

// Errors as CountGroups.
absl::StatusOr<GroupRate> CountGroupsPerPass(absl::Span<const TransformStep> steps,
                                             int64_t examples, int64_t towers);

}  // namespace lockstep
