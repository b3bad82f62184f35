#include "worker/collective/batch_plan.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/collective/run_in_memory.h"

namespace lockstep::worker {

absl::StatusOr<BatchPlan> MakeBatchPlan(const PackingPlan& packing, ScheduleSpec spec) {
  std::vector<Schedule> schedules;
  for (const ReductionVector& vector : packing.vectors()) {
    spec.length = static_cast<size_t>(vector.elements);
    LOCKSTEP_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(spec));
    schedules.push_back(std::move(schedule));
    ++spec.index;
  }
  const std::vector<ReductionAlgorithm> algorithms(schedules.size(), spec.algorithm);
  return BatchPlan{packing, std::move(schedules), algorithms};
}

absl::Status AddGathers(const Topology& topology, absl::Span<const TensorSpec> tensors, int first,
                        BatchPlan* plan) {
  const absl::Span<const ReductionVector> before = plan->packing.vectors();
  std::vector<ReductionVector> vectors(before.begin(), before.end());
  for (int i = first; i < static_cast<int>(tensors.size()); ++i) {
    const int64_t elements = tensors[i].shape->num_elements();
    LOCKSTEP_ASSIGN_OR_RETURN(Schedule schedule,
                              MakeSchedule({.algorithm = ReductionAlgorithm::kGather,
                                            .topology = topology,
                                            .length = static_cast<size_t>(elements)}));
    vectors.push_back({false, tensors[i].dtype, elements, {{i, 0, elements}}});
    plan->schedules.push_back(std::move(schedule));
    plan->algorithms.push_back(ReductionAlgorithm::kGather);
  }
  plan->packing = PackingPlan(std::move(vectors));
  return absl::OkStatus();
}

void RunBatchInMemory(const BatchPlan& plan,
                      absl::Span<const std::vector<MutableTensorView>> tensors, int divisor) {
  for (size_t i = 0; i < plan.schedules.size(); ++i) {
    const ReductionVector& vector = plan.packing.vectors()[i];
    std::vector<Tensor> packs;
    std::vector<MutableTensorView> views;
    for (const std::vector<MutableTensorView>& own : tensors) {
      if (vector.is_pack) {
        packs.push_back(Tensor(vector.dtype, Shape({vector.elements})));
        views.push_back(packs.back().view());
        const std::vector<TensorView> sources(own.begin(), own.end());
        Pack(vector, sources, views.back());
      } else {
        views.push_back(own[vector.segments[0].tensor]);
      }
    }
    RunInMemory(plan.schedules[i], views, divisor);
    for (size_t rank = 0; rank < packs.size(); ++rank) {
      Unpack(vector, packs[rank].view(), tensors[rank]);
    }
  }
}

}  // namespace lockstep::worker
