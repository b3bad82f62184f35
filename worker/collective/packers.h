// The packers of TensorFlow's cross-tower ops. Each makes a PackingPlan of the tensors of the first
// tower; those of the others are alike.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/collective/packing_plan.h"

namespace lockstep::worker {

// Flattens all tensors in order and cuts them into num_packs packs of floor(total / num_packs)
// elements; the last takes the rest. Fewer elements than packs: all but the last are empty.
class ConcatAndSplitPacker {
 public:
  // INVALID_ARGUMENT: num_packs < 1.
  static absl::StatusOr<ConcatAndSplitPacker> Create(int num_packs = 1);
  // INVALID_ARGUMENT: a shape is unknown; dtypes differ.
  absl::StatusOr<PackingPlan> Plan(absl::Span<const TensorSpec> tensors) const;

 private:
  explicit ConcatAndSplitPacker(int num_packs) : num_packs_(num_packs) {}
  int num_packs_;
};

// Merges runs of 2 to max_group neighbours that are float32 and have at most max_bytes each. The
// original's runs reach max_group + 2; this is the documented meaning.
class AggregateSmallTensorPacker {
 public:
  static constexpr int64_t kMaxBytes = 1'048'576;
  static constexpr int kMaxGroup = 16;

  // INVALID_ARGUMENT: a limit < 1.
  static absl::StatusOr<AggregateSmallTensorPacker> Create(int64_t max_bytes = kMaxBytes,
                                                           int max_group = kMaxGroup);
  // INVALID_ARGUMENT: a shape is unknown.
  absl::StatusOr<PackingPlan> Plan(absl::Span<const TensorSpec> tensors) const;

 private:
  AggregateSmallTensorPacker(int64_t max_bytes, int max_group)
      : max_bytes_(max_bytes), max_group_(max_group) {}
  int64_t max_bytes_;
  int max_group_;
};

// tensorpack's: as ConcatAndSplitPacker with as many packs as towers, planned once. It goes on
// without packs where a shape is unknown, dtypes differ, or packs would have fewer than 1,024
// elements.
class GradientPacker {
 public:
  static constexpr int kNumPacks = 8;
  static constexpr int64_t kMinPackElements = 1024;

  // INVALID_ARGUMENT: num_packs < 1.
  static absl::StatusOr<GradientPacker> Create(absl::Span<const TensorSpec> first_tower,
                                               int num_packs = kNumPacks);

  // Null: without packs.
  const PackingPlan* plan() const { return plan_.has_value() ? &*plan_ : nullptr; }
  // INVALID_ARGUMENT naming the tensor: number, names, shapes or dtypes are not those of the plan.
  absl::Status Check(absl::Span<const TensorSpec> tensors) const;

 private:
  explicit GradientPacker(absl::Span<const TensorSpec> tensors)
      : tensors_(tensors.begin(), tensors.end()) {}
  std::vector<TensorSpec> tensors_;
  std::optional<PackingPlan> plan_;
};

// The three fields of an all-reduce that choose a packer.
struct PackingOptions {
  int num_packs = 1;
  int64_t agg_small_grads_max_bytes = 0;
  int agg_small_grads_max_group = 10;

  static constexpr PackingOptions ForMultiWorker() { return {0, 0, 10}; }
};

// num_packs > 0: concatenate and split. Otherwise, both limits > 0: small tensors. Otherwise none.
// INVALID_ARGUMENT as the packer.
absl::StatusOr<PackingPlan> PlanPacking(const PackingOptions& options,
                                        absl::Span<const TensorSpec> tensors);

}  // namespace lockstep::worker
