#include "chief/plan/place.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/placement/split.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/rule.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::chief {
namespace {

// Every worker pulls and pushes each part by itself, and all are named in one message.
constexpr size_t kMostParts = 4096;

int64_t BytesOf(const Shape& shape, DType dtype) {
  return shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
}

VariableSpec* AddSpec(const ModelVariable& variable, const std::string& name, const Shape& shape,
                      Placement* placement) {
  VariableSpec* spec = placement->add_variables();
  spec->set_id(static_cast<uint32_t>(placement->variables_size() - 1));
  spec->set_name(name);
  spec->set_dtype(ToProto(variable.dtype));
  spec->mutable_dims()->Add(shape.dims().begin(), shape.dims().end());
  spec->set_trainable(variable.trainable);
  *spec->mutable_initializer() = variable.initializer;
  spec->set_sparse(variable.sparse);
  spec->set_frozen(variable.frozen);
  return spec;
}

std::vector<RowRange> PartsOf(const ModelVariable& variable, int64_t max_part_bytes) {
  const int64_t bytes = BytesOf(variable.shape, variable.dtype);
  if (!variable.trainable || variable.shape.rank() == 0 || bytes <= max_part_bytes) return {};
  const int64_t rows = variable.shape.dim(0);
  return SplitRows(rows, bytes / rows, max_part_bytes);
}

absl::Status AddVariable(const ModelVariable& variable, int64_t max_part_bytes,
                         Placement* placement) {
  const std::vector<RowRange> parts = PartsOf(variable, max_part_bytes);
  if (parts.size() <= 1) {
    AddSpec(variable, variable.name, variable.shape, placement);
    return absl::OkStatus();
  }
  if (parts.size() > kMostParts) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_part_bytes: it cuts variable ", variable.name, " of ",
                     BytesOf(variable.shape, variable.dtype), " bytes into ", parts.size(),
                     " parts, expected at most ", kMostParts, ". Remedy: raise it"));
  }
  std::vector<int64_t> dims(variable.shape.dims().begin(), variable.shape.dims().end());
  for (size_t k = 0; k < parts.size(); ++k) {
    dims[0] = parts[k].count;
    VariableSpec* spec =
        AddSpec(variable, absl::StrCat(variable.name, "#", k), Shape(dims), placement);
    RowPart* part = spec->mutable_part();
    part->set_of(variable.name);
    part->set_first_row(parts[k].first);
    part->set_num_rows(variable.shape.dim(0));
  }
  return absl::OkStatus();
}

std::vector<VariableSize> Sizes(const Placement& placement) {
  std::vector<VariableSize> sizes;
  for (const VariableSpec& spec : placement.variables()) {
    const auto type = TypeOf(spec);
    LOCKSTEP_CHECK(type.ok());
    VariableSize& size = sizes.emplace_back(VariableSize{.bytes = BytesOf(type->shape, type->dtype),
                                                         .elements = type->shape.num_elements()});
    if (spec.name() == ModelGraph::kLossVariable) size.shard = ShardIndex(kStepShard);
  }
  return sizes;
}

PlacementRule RuleOf(const StrategyDef::ParameterServer& strategy) {
  switch (strategy.placement()) {
    case StrategyDef::ParameterServer::LEAST_LOADED:
      return PlacementRule::kLeastLoaded;
    case StrategyDef::ParameterServer::ROUND_ROBIN:
      return PlacementRule::kRoundRobin;
    default:
      return PlacementRule::kBalanced;
  }
}

// Of a part: the variable that it is of.
const std::string& WholeName(const VariableSpec& spec) {
  return spec.has_part() ? spec.part().of() : spec.name();
}

// Puts the variable of one entry, with all its parts, on the ps that it names.
absl::Status PutOn(const PlacedVariable& entry, const Placement& placement,
                   std::vector<VariableSize>* sizes) {
  constexpr absl::string_view kField = "strategy.parameter_server.place";
  if (entry.ps() < 0 || entry.ps() >= placement.shards()) {
    return Broken(kField,
                  absl::StrCat("variable ", entry.variable(), ": expected a ps from 0 to ",
                               placement.shards() - 1, ", got ", entry.ps()),
                  "name a ps of the cluster spec");
  }
  if (entry.variable() == ModelGraph::kLossVariable) {
    return Broken(kField, absl::StrCat(entry.variable(), " is always on ps 0"), "remove it");
  }
  bool is_known = false;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if (WholeName(placement.variables(static_cast<int>(i))) != entry.variable()) continue;
    if ((*sizes)[i].shard.has_value()) {
      return Broken(kField, absl::StrCat("variable ", entry.variable(), " is placed twice"),
                    "keep one of the two");
    }
    (*sizes)[i].shard = ShardIndex(static_cast<uint32_t>(entry.ps()));
    is_known = true;
  }
  if (is_known) return absl::OkStatus();
  return Broken(kField, absl::StrCat("the model has no variable \"", entry.variable(), "\""),
                "write layer/variable, such as fc/kernel");
}

}  // namespace

absl::StatusOr<Placement> Place(const ModelGraph& graph, uint32_t shards, int64_t max_part_bytes,
                                const StrategyDef::ParameterServer& strategy) {
  Placement placement;
  placement.set_shards(shards);
  for (const ModelVariable& variable : graph.variables()) {
    LOCKSTEP_RETURN_IF_ERROR(AddVariable(variable, max_part_bytes, &placement));
  }
  std::vector<VariableSize> sizes = Sizes(placement);
  for (const PlacedVariable& entry : strategy.place()) {
    LOCKSTEP_RETURN_IF_ERROR(PutOn(entry, placement, &sizes));
  }
  const std::vector<ShardIndex> assigned = AssignShards(sizes, shards, RuleOf(strategy));
  for (size_t i = 0; i < assigned.size(); ++i) {
    placement.mutable_variables(static_cast<int>(i))->set_shard(assigned[i].value());
  }
  return placement;
}

void LeaveToWorkers(Placement* placement) {
  for (VariableSpec& spec : *placement->mutable_variables()) {
    spec.set_replicated(!spec.frozen() && spec.name() != ModelGraph::kLossVariable);
  }
}

Balance BalanceOf(const Placement& placement) {
  std::vector<ShardIndex> assigned;
  for (const VariableSpec& spec : placement.variables()) {
    assigned.push_back(ShardIndex(spec.shard()));
  }
  return MeasureBalance(Sizes(placement), assigned, placement.shards());
}

}  // namespace lockstep::chief
