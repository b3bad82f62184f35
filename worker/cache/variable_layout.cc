#include "worker/cache/variable_layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"
#include "common/tensor_proto/turns.h"

namespace lockstep::worker {
namespace {

int64_t NumRows(const Shape& shape) { return shape.rank() == 0 ? 1 : shape.dim(0); }

int64_t RowsHere(const WholeVariable& variable) {
  return variable.parts.empty() ? 0
                                : variable.parts.back().first_row + variable.parts.back().num_rows;
}

bool IsComplete(const WholeVariable& variable) {
  return RowsHere(variable) == NumRows(variable.shape);
}

absl::Status Wrong(const VariableSpec& spec, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("placement: variable ", spec.name(), " ", what));
}

WholeVariable BeginVariable(const VariableSpec& spec, const VariableType& type) {
  return {.name = spec.has_part() ? spec.part().of() : spec.name(),
          .dtype = type.dtype,
          .shape = type.whole,
          .trainable = spec.trainable(),
          .sparse = spec.sparse(),
          .frozen = spec.frozen(),
          .replicated = spec.replicated(),
          .turn = TurnOf(spec),
          .parts = {}};
}

bool HasPart(const WholeVariable& variable, const VariableSpec& spec, const VariableType& type) {
  return variable.name == spec.part().of() && variable.dtype == type.dtype &&
         variable.shape == type.whole && variable.trainable == spec.trainable() &&
         variable.sparse == spec.sparse() && variable.frozen == spec.frozen() &&
         variable.replicated == spec.replicated() && variable.turn == TurnOf(spec);
}

}  // namespace

absl::StatusOr<VariableLayout> VariableLayout::Create(const Placement& placement) {
  VariableLayout layout;
  layout.num_shards_ = placement.shards();
  LOCKSTEP_ASSIGN_OR_RETURN(layout.turns_, TurnsOf(placement));
  layout.pushed_parts_.assign(layout.turns_.num_losses(), std::vector<int>(layout.num_shards_));
  std::vector<WholeVariable>& variables = layout.variables_;
  for (const VariableSpec& spec : placement.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(spec));
    if (spec.shard() >= layout.num_shards_) {
      return Wrong(spec, absl::StrCat("is on ps ", spec.shard(), ", but there are ",
                                      layout.num_shards_, " ps"));
    }
    const bool goes_on = !variables.empty() && !IsComplete(variables.back());
    if (goes_on && !(spec.has_part() && HasPart(variables.back(), spec, type))) {
      return Wrong(spec, absl::StrCat("comes where the next part of ", variables.back().name,
                                      " was expected"));
    }
    if (!goes_on) variables.push_back(BeginVariable(spec, type));
    WholeVariable& variable = variables.back();
    const VariablePart part{.id = VariableId(spec.id()),
                            .shard = spec.shard(),
                            .shape = type.shape,
                            .first_row = spec.part().first_row(),
                            .num_rows = NumRows(type.shape)};
    if (part.first_row != RowsHere(variable) ||
        part.num_rows > NumRows(variable.shape) - part.first_row) {
      return Wrong(spec, absl::StrCat("has ", part.num_rows, " rows from row ", part.first_row,
                                      " of ", NumRows(variable.shape), "; expected them from row ",
                                      RowsHere(variable)));
    }
    for (size_t loss = 0; loss < layout.pushed_parts_.size(); ++loss) {
      const bool is_pushed =
          variable.turn == GradientTurns::kEveryStep || variable.turn == static_cast<int>(loss);
      layout.pushed_parts_[loss][part.shard] += is_pushed;
    }
    variable.parts.push_back(part);
  }
  if (variables.empty() || IsComplete(variables.back())) return layout;
  return absl::InvalidArgumentError(absl::StrCat(
      "placement: variable ", variables.back().name, " has ", RowsHere(variables.back()),
      " rows in its parts, expected ", NumRows(variables.back().shape)));
}

}  // namespace lockstep::worker
