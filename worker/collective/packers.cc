#include "worker/collective/packers.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

absl::Status CheckAtLeastOne(absl::string_view field, int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected at least 1, got ", value,
                                                 ". Remedy: leave the packer out for no packing"));
}

bool HaveOneDType(absl::Span<const TensorSpec> tensors) {
  return std::ranges::all_of(
      tensors, [&](const TensorSpec& tensor) { return tensor.dtype == tensors[0].dtype; });
}

int64_t TotalElements(absl::Span<const TensorSpec> tensors) {
  int64_t total = 0;
  for (const TensorSpec& tensor : tensors) total += tensor.shape->num_elements();
  return total;
}

// Shapes are known, there is one dtype.
PackingPlan ConcatAndSplit(absl::Span<const TensorSpec> tensors, int num_packs) {
  const int64_t total = TotalElements(tensors);
  const DType dtype = tensors.empty() ? DType::kFloat32 : tensors[0].dtype;
  std::vector<ReductionVector> packs(num_packs, ReductionVector{true, dtype});
  size_t tensor = 0;
  int64_t first = 0;
  for (int p = 0; p < num_packs; ++p) {
    const int64_t size = total / num_packs;
    packs[p].elements = p + 1 < num_packs ? size : total - size * (num_packs - 1);
    for (int64_t open = packs[p].elements; open > 0;) {
      const int64_t count = std::min(open, tensors[tensor].shape->num_elements() - first);
      if (count > 0) packs[p].segments.push_back({static_cast<int>(tensor), first, count});
      open -= count;
      first += count;
      if (first < tensors[tensor].shape->num_elements()) continue;
      ++tensor;
      first = 0;
    }
  }
  return PackingPlan(std::move(packs));
}

}  // namespace

absl::StatusOr<ConcatAndSplitPacker> ConcatAndSplitPacker::Create(int num_packs) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastOne("num_packs", num_packs));
  return ConcatAndSplitPacker(num_packs);
}

absl::StatusOr<PackingPlan> ConcatAndSplitPacker::Plan(absl::Span<const TensorSpec> tensors) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckShapesAreKnown(tensors));
  for (const TensorSpec& tensor : tensors) {
    if (tensor.dtype == tensors[0].dtype) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("num_packs: tensors of one pack have one dtype, expected ",
                     Name(tensors[0].dtype), " as of ", tensors[0].name, ", got ",
                     Name(tensor.dtype), " of ", tensor.name, ". Remedy: set num_packs to 0"));
  }
  return ConcatAndSplit(tensors, num_packs_);
}

absl::StatusOr<AggregateSmallTensorPacker> AggregateSmallTensorPacker::Create(int64_t max_bytes,
                                                                              int max_group) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastOne("agg_small_grads_max_bytes", max_bytes));
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastOne("agg_small_grads_max_group", max_group));
  return AggregateSmallTensorPacker(max_bytes, max_group);
}

absl::StatusOr<PackingPlan> AggregateSmallTensorPacker::Plan(
    absl::Span<const TensorSpec> tensors) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckShapesAreKnown(tensors));
  const auto is_small = [&](size_t i) {
    const TensorSpec& tensor = tensors[i];
    return tensor.dtype == DType::kFloat32 && tensor.shape->num_elements() <= max_bytes_ / 4;
  };
  std::vector<ReductionVector> packs;
  std::vector<ReductionVector> alone;
  for (size_t begin = 0; begin < tensors.size();) {
    size_t end = begin;
    ReductionVector pack{true, tensors[begin].dtype};
    while (end < tensors.size() && end - begin < static_cast<size_t>(max_group_) && is_small(end)) {
      const int64_t elements = tensors[end].shape->num_elements();
      pack.segments.push_back({static_cast<int>(end), 0, elements});
      pack.elements += elements;
      ++end;
    }
    if (end - begin >= 2) {
      packs.push_back(std::move(pack));
      begin = end;
    } else {
      const int64_t elements = tensors[begin].shape->num_elements();
      alone.push_back(
          {false, tensors[begin].dtype, elements, {{static_cast<int>(begin), 0, elements}}});
      ++begin;
    }
  }
  std::ranges::move(alone, std::back_inserter(packs));
  return PackingPlan(std::move(packs));
}

absl::StatusOr<GradientPacker> GradientPacker::Create(absl::Span<const TensorSpec> first_tower,
                                                      int num_packs) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastOne("number of packs", num_packs));
  GradientPacker packer(first_tower);
  if (!CheckShapesAreKnown(first_tower).ok() || !HaveOneDType(first_tower)) return packer;
  if (TotalElements(first_tower) / num_packs < kMinPackElements) return packer;
  packer.plan_ = ConcatAndSplit(first_tower, num_packs);
  return packer;
}

absl::Status GradientPacker::Check(absl::Span<const TensorSpec> tensors) const {
  if (tensors.size() != tensors_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("GradientPacker: planned for ", tensors_.size(),
                                                   " gradients, got ", tensors.size(),
                                                   ". Remedy: give every tower the same model"));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] == tensors_[i]) continue;
    const auto describe = [](const TensorSpec& tensor) {
      return absl::StrCat(tensor.name, " ", Name(tensor.dtype), " ",
                          tensor.shape.has_value() ? tensor.shape->ToString() : "unknown");
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "GradientPacker: gradient ", i, " was planned as ", describe(tensors_[i]), ", got ",
        describe(tensors[i]), ". Remedy: shapes stay those of the first step"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PackingPlan> PlanPacking(const PackingOptions& options,
                                        absl::Span<const TensorSpec> tensors) {
  if (options.num_packs > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto packer, ConcatAndSplitPacker::Create(options.num_packs));
    return packer.Plan(tensors);
  }
  if (options.agg_small_grads_max_bytes > 0 && options.agg_small_grads_max_group > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const auto packer, AggregateSmallTensorPacker::Create(options.agg_small_grads_max_bytes,
                                                              options.agg_small_grads_max_group));
    return packer.Plan(tensors);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckShapesAreKnown(tensors));
  return PackingPlan::Unpacked(tensors);
}

}  // namespace lockstep::worker
