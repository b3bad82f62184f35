// VariableLayout maps the variables of a model to shards. A variable is on one shard, or is split
// by rows over several. The layout is computed from the placement, without the graph, which has
// the same variables in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "common/turns/gradient_turns.h"
#include "proto/tensor.pb.h"

namespace lockstep::worker {

// The rows of a variable that one shard holds.
struct VariablePart {
  VariableId id;
  uint32_t shard = 0;
  Shape shape;
  int64_t first_row = 0;  // in the whole variable; a scalar counts as a row
  int64_t num_rows = 1;

  // Its rows in a view of the whole variable.
  template <typename View>
  View In(const View& whole) const {
    const bool is_whole = whole.shape.rank() == 0 || num_rows == whole.shape.dim(0);
    return is_whole ? whole : RowRange(whole, first_row, num_rows);
  }
};

struct WholeVariable {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;  // of the whole variable
  bool trainable = true;
  bool sparse = false;
  bool frozen = false;
  bool replicated = false;               // the workers keep it: nothing is pushed for it
  int turn = GradientTurns::kEveryStep;  // as GradientTurns takes it
  std::vector<VariablePart> parts;       // in the order of their rows; together all of them
};

// A value, constant after Create.
class VariableLayout {
 public:
  // INVALID_ARGUMENT naming the variable: parts have gaps or are out of order, a shard does not
  // exist, or a loss has no turn.
  static absl::StatusOr<VariableLayout> Create(const Placement& placement);

  const std::vector<WholeVariable>& variables() const { return variables_; }
  uint32_t num_shards() const { return num_shards_; }
  const LossTurns& turns() const { return turns_; }
  // Parts on a shard for which a step of this loss's turn pushes something.
  int pushed_parts(size_t loss, uint32_t shard) const { return pushed_parts_[loss][shard]; }

 private:
  std::vector<WholeVariable> variables_;
  uint32_t num_shards_ = 0;
  LossTurns turns_;
  std::vector<std::vector<int>> pushed_parts_;  // by loss and shard
};

}  // namespace lockstep::worker
