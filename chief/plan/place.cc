#include "chief/plan/place.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/placement/split.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
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
    sizes.push_back({BytesOf(type->shape, type->dtype), spec.name() == ModelGraph::kLossVariable});
  }
  return sizes;
}

}  // namespace

absl::StatusOr<Placement> Place(const ModelGraph& graph, uint32_t shards, int64_t max_part_bytes) {
  Placement placement;
  placement.set_shards(shards);
  for (const ModelVariable& variable : graph.variables()) {
    LOCKSTEP_RETURN_IF_ERROR(AddVariable(variable, max_part_bytes, &placement));
  }
  const std::vector<ShardIndex> assigned = AssignShards(Sizes(placement), shards);
  for (size_t i = 0; i < assigned.size(); ++i) {
    placement.mutable_variables(static_cast<int>(i))->set_shard(assigned[i].value());
  }
  return placement;
}

Balance BalanceOf(const Placement& placement) {
  std::vector<ShardIndex> assigned;
  for (const VariableSpec& spec : placement.variables()) {
    assigned.push_back(ShardIndex(spec.shard()));
  }
  return MeasureBalance(Sizes(placement), assigned, placement.shards());
}

}  // namespace lockstep::chief
