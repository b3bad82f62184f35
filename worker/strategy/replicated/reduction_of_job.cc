#include "worker/strategy/replicated/reduction_of_job.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "worker/collective/all_reduce.h"
#include "worker/collective/choose_the_best.h"
#include "worker/collective/collective_all_reduce.h"
#include "worker/collective/multi_worker_all_reduce.h"
#include "worker/strategy/replicated/row_share.h"

namespace lockstep::worker {
namespace {

using Replicated = StrategyDef::Replicated;

constexpr char kMode[] = "strategy.replicated.mode";
constexpr char kOps[] = "strategy.replicated.cross_tower_ops";

bool IsTable(const TensorSpec& tensor) { return tensor.shares > 0; }

struct Named {
  BatchPlan plan;
  std::string name;
  std::string reason = "";
  std::vector<std::string> warnings = {};
  int merge_scope = 0;
};

absl::Status Refused(absl::string_view field, absl::string_view problem, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem, ". Remedy: ", remedy));
}

absl::StatusOr<BatchPlan> Unpacked(ReductionAlgorithm algorithm, const Topology& topology,
                                   absl::Span<const TensorSpec> tensors, int root = 0) {
  return MakeBatchPlan(PackingPlan::Unpacked(tensors),
                       {.algorithm = algorithm, .topology = topology, .root = root});
}

// tensorpack's mode gpu: one tower adds each tensor, in turn from the last tensor on.
absl::StatusOr<BatchPlan> InTurns(const Topology& topology,
                                  const std::vector<TensorSpec>& tensors) {
  LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan,
                            Unpacked(ReductionAlgorithm::kReductionToOne, topology, tensors));
  const int count = static_cast<int>(plan.schedules.size());
  for (int i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        plan.schedules[i],
        MakeSchedule({.algorithm = ReductionAlgorithm::kReductionToOne,
                      .topology = topology,
                      .root = (count - 1 - i) % topology.towers,
                      .length = static_cast<size_t>(plan.packing.vectors()[i].elements)}));
  }
  return plan;
}

absl::StatusOr<Named> Hierarchical(const Topology& topology,
                                   const std::vector<TensorSpec>& tensors) {
  LOCKSTEP_ASSIGN_OR_RETURN(const GradientPacker packer,
                            GradientPacker::Create(tensors, topology.towers));
  const PackingPlan packing =
      packer.plan() != nullptr ? *packer.plan() : PackingPlan::Unpacked(tensors);
  LOCKSTEP_ASSIGN_OR_RETURN(
      BatchPlan plan, MakeBatchPlan(packing, {.algorithm = ReductionAlgorithm::kHierarchicalCopy,
                                              .topology = topology}));
  return Named{std::move(plan), "HIERARCHICAL"};
}

// What the devices suggest; across workers the one mode that reduces over them.
absl::StatusOr<Named> Chosen(const Topology& topology, const std::vector<TensorSpec>& tensors) {
  if (topology.workers > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan,
                              Unpacked(ReductionAlgorithm::kCollective, topology, tensors));
    return Named{std::move(plan), "COLLECTIVE",
                 absl::StrCat("the towers are of ", topology.workers, " workers")};
  }
  std::vector<DeviceId> devices;
  for (int tower = 0; tower < topology.towers; ++tower) {
    devices.push_back(DeviceId{.index = tower});
  }
  CrossTowerOpsChoice choice = ChooseTheBest(devices, {.visible = devices});
  LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan,
                            Unpacked(ReductionAlgorithm::kReductionToOne, topology, tensors));
  return Named{std::move(plan), std::string(Name(choice.kind)), std::move(choice.reason),
               std::move(choice.warnings)};
}

absl::StatusOr<Named> OfMode(const Replicated& replicated, const Topology& topology,
                             const std::vector<TensorSpec>& tensors) {
  switch (replicated.mode()) {
    case Replicated::CPU: {
      LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan,
                                Unpacked(ReductionAlgorithm::kReductionToOne, topology, tensors));
      return Named{std::move(plan), "CPU"};
    }
    case Replicated::HIERARCHICAL:
      return Hierarchical(topology, tensors);
    case Replicated::COLLECTIVE: {
      LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan,
                                Unpacked(ReductionAlgorithm::kCollective, topology, tensors));
      return Named{std::move(plan), "COLLECTIVE"};
    }
    case Replicated::GPU: {
      LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan, InTurns(topology, tensors));
      return Named{std::move(plan), "GPU"};
    }
    case Replicated::NCCL:
      return Refused(kMode, "NCCL needs GPUs, and replicated towers are reduced on the host",
                     "use CPU, GPU or COLLECTIVE, or leave it out");
    default:
      return Chosen(topology, tensors);
  }
}

absl::StatusOr<int> Number(absl::string_view field, int64_t value, int64_t least) {
  if (value >= least && value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  return Refused(absl::StrCat(kOps, ".", field),
                 absl::StrCat("expected a number from ", least, ", got ", value), "correct it");
}

absl::StatusOr<PackingOptions> PackingOf(const CrossTowerOpsDef::Packing& def,
                                         PackingOptions packing) {
  if (def.has_num_packs()) {
    LOCKSTEP_ASSIGN_OR_RETURN(packing.num_packs, Number("packing.num_packs", def.num_packs(), 0));
  }
  if (def.has_agg_small_grads_max_bytes()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        packing.agg_small_grads_max_bytes,
        Number("packing.agg_small_grads_max_bytes", def.agg_small_grads_max_bytes(), 0));
  }
  if (def.has_agg_small_grads_max_group()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        packing.agg_small_grads_max_group,
        Number("packing.agg_small_grads_max_group", def.agg_small_grads_max_group(), 0));
  }
  return packing;
}

absl::StatusOr<Named> OfAllReduce(const CrossTowerOpsDef::AllReduce& def, const Topology& topology,
                                  const std::vector<TensorSpec>& tensors) {
  AllReduceOptions options;
  if (!def.all_reduce_alg().empty()) options.all_reduce_alg = def.all_reduce_alg();
  LOCKSTEP_ASSIGN_OR_RETURN(options.packing, PackingOf(def.packing(), options.packing));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto op, AllReduce::Create(options));
  LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan, op->Plan(topology, tensors));
  return Named{std::move(plan), absl::StrCat("all_reduce ", options.all_reduce_alg)};
}

absl::StatusOr<Named> OfMultiWorker(const CrossTowerOpsDef::MultiWorkerAllReduce& def,
                                    const Topology& topology,
                                    const std::vector<TensorSpec>& tensors) {
  MultiWorkerAllReduceOptions options{.topology = topology};
  if (!def.all_reduce_spec().empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.all_reduce_spec, AllReduceSpec::Parse(def.all_reduce_spec()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(options.packing, PackingOf(def.packing(), options.packing));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto op, MultiWorkerAllReduce::Create(options));
  LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan, op->Plan(topology, tensors));
  return Named{std::move(plan),
               absl::StrCat("multi_worker_all_reduce ", options.all_reduce_spec.ToString())};
}

absl::StatusOr<Named> OfOps(const CrossTowerOpsDef& ops, const Topology& topology,
                            const std::vector<TensorSpec>& tensors) {
  switch (ops.kind_case()) {
    case CrossTowerOpsDef::kAllReduce:
      return OfAllReduce(ops.all_reduce(), topology, tensors);
    case CrossTowerOpsDef::kMultiWorkerAllReduce:
      return OfMultiWorker(ops.multi_worker_all_reduce(), topology, tensors);
    case CrossTowerOpsDef::kCollectiveAllReduce: {
      const int64_t given = ops.collective_all_reduce().all_reduce_merge_scope();
      LOCKSTEP_ASSIGN_OR_RETURN(const int scope,
                                Number("all_reduce_merge_scope",
                                       given == 0 ? CollectiveAllReduce::kMergeScope : given, 1));
      LOCKSTEP_ASSIGN_OR_RETURN(BatchPlan plan,
                                Unpacked(ReductionAlgorithm::kCollective, topology, tensors));
      return Named{.plan = std::move(plan), .name = "collective_all_reduce", .merge_scope = scope};
    }
    default: {
      LOCKSTEP_ASSIGN_OR_RETURN(
          const int root,
          Number("reduce_to_device", ops.reduction_to_one_device().reduce_to_device(), 0));
      LOCKSTEP_ASSIGN_OR_RETURN(
          BatchPlan plan, Unpacked(ReductionAlgorithm::kReductionToOne, topology, tensors, root));
      return Named{std::move(plan), "reduction_to_one_device"};
    }
  }
}

}  // namespace

std::vector<TensorSpec> ReducedTensors(const VariableLayout& layout,
                                       absl::Span<const int64_t> most_rows) {
  std::vector<TensorSpec> dense;
  std::vector<TensorSpec> tables;
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const WholeVariable& variable = layout.variables()[i];
    if (!variable.trainable || variable.frozen) continue;
    if (variable.sparse) {
      const Shape share({RowShare(variable, most_rows[i]).num_elements()});
      tables.push_back(
          {.name = variable.name, .dtype = variable.dtype, .shape = share, .shares = 1});
    } else {
      dense.push_back({.name = variable.name, .dtype = variable.dtype, .shape = variable.shape});
    }
  }
  dense.insert(dense.end(), tables.begin(), tables.end());
  return dense;
}

absl::StatusOr<ChosenReduction> ReductionOf(const StrategyDef::Replicated& replicated,
                                            const Topology& topology,
                                            std::vector<TensorSpec> tensors) {
  const bool names_ops = replicated.has_cross_tower_ops();
  const auto tables = std::ranges::find_if(tensors, IsTable);
  const std::vector<TensorSpec> dense(tensors.begin(), tables);
  absl::StatusOr<Named> named = names_ops ? OfOps(replicated.cross_tower_ops(), topology, dense)
                                          : OfMode(replicated, topology, dense);
  if (!named.ok()) {
    const bool is_placed = absl::StartsWith(named.status().message(), "strategy.");
    return is_placed ? named.status() : Annotate(named.status(), names_ops ? kOps : kMode);
  }
  for (TensorSpec& table : absl::MakeSpan(tensors).subspan(dense.size())) {
    table.shares = topology.num_participants();
    table.shape = Shape({table.shape->num_elements() * table.shares});
  }
  LOCKSTEP_RETURN_IF_ERROR(
      AddGathers(topology, tensors, static_cast<int>(dense.size()), &named->plan));
  return ChosenReduction{.reduction = {.topology = topology,
                                       .tensors = std::move(tensors),
                                       .plan = std::move(named->plan),
                                       .average = !replicated.has_average() || replicated.average(),
                                       .merge_scope = named->merge_scope},
                         .name = std::move(named->name),
                         .reason = std::move(named->reason),
                         .warnings = std::move(named->warnings)};
}

}  // namespace lockstep::worker
