// Common code of the sparse accumulator's tests: gradients from literals, and an accumulator with
// its answered takes.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/sparse_accumulator.h"
#include "tests/unit/ps/accumulator/dense_fixture.h"
#include "tests/unit/ps/accumulator/take_log.h"

namespace lockstep::reference::test {

using Rows = std::vector<std::pair<int64_t, std::vector<float>>>;

// A gradient that owns its tensors.
struct SparsePush {
  Tensor indices;
  Tensor values;
  std::optional<std::vector<int64_t>> dense_shape;

  SparseGradientView view() const {
    SparseGradientView view{indices.view(), values.view(), {}};
    if (dense_shape.has_value()) view.dense_shape = *dense_shape;
    return view;
  }
};

inline Tensor Indices(const std::vector<int64_t>& indices, std::optional<Shape> shape = {}) {
  Tensor tensor(DType::kInt64, shape.value_or(Shape({static_cast<int64_t>(indices.size())})));
  std::copy(indices.begin(), indices.end(), static_cast<int64_t*>(tensor.data()));
  return tensor;
}

// Values of the shape [indices..., slice...].
inline SparsePush PushOf(const std::vector<int64_t>& indices, const Shape& values_shape,
                         const std::vector<float>& values, DType dtype = DType::kFloat32) {
  return {Indices(indices), Of(values_shape, values, dtype), {}};
}

inline SparsePush PushOf(const Rows& rows, DType dtype = DType::kFloat32) {
  std::vector<int64_t> indices;
  std::vector<float> values;
  for (const auto& [index, slice] : rows) {
    indices.push_back(index);
    values.insert(values.end(), slice.begin(), slice.end());
  }
  const int64_t width = rows.empty() ? 1 : static_cast<int64_t>(rows[0].second.size());
  return PushOf(indices, Shape({static_cast<int64_t>(rows.size()), width}), values, dtype);
}

class SparseFixture {
 public:
  using Accumulator = WaitingAccumulator<SparseGradientView, SparseGradient>;

  explicit SparseFixture(PartialShape shape = PartialShape(),
                         Reduction reduction = Reduction::kMean, DType dtype = DType::kFloat32,
                         RowMerge merge = RowMerge::kAsPushed)
      : accumulator(dtype, std::move(shape), reduction, merge), dtype_(dtype) {}

  absl::Status Apply(const SparsePush& push, int64_t local_step = 0) {
    auto applied = accumulator.Apply(GlobalStep(local_step), push.view());
    if (!applied.ok()) return applied.status();
    was_accepted = applied->accepted;
    takes_.RecordTakes(std::move(applied->finished));
    return absl::OkStatus();
  }
  void Apply(const Rows& rows, int64_t local_step = 0) {
    const absl::Status status = Apply(PushOf(rows, dtype_), local_step);
    INFO(status);
    REQUIRE(status.ok());
  }
  // "" for success.
  std::string ErrorOf(const SparsePush& push, int64_t local_step = 0) {
    const absl::Status status = Apply(push, local_step);
    CHECK((status.ok() || absl::IsInvalidArgument(status)));
    return std::string(status.message());
  }

  TakeId Start(int required) { return takes_.Start(required); }
  void Cancel(TakeId id) { takes_.Cancel(id); }

  // A take that must be satisfied at once.
  Rows Take(int required) { return RowsOf(Start(required)); }

  bool IsFinished(TakeId id) const { return takes_.IsFinished(id); }
  absl::Status StatusOf(TakeId id) const { return takes_.StatusOf(id); }
  const SparseGradient& ResultOf(TakeId id) const { return takes_.ResultOf(id); }
  int CountOf(TakeId id) const { return takes_.CountOf(id); }
  // The slices flattened.
  Rows RowsOf(TakeId id) const {
    const SparseGradient& gradient = ResultOf(id);
    const std::vector<float> values = Values(gradient.values);
    Rows rows;
    REQUIRE(gradient.values.shape().dim(0) == static_cast<int64_t>(gradient.indices.size()));
    for (size_t i = 0; i < gradient.indices.size(); ++i) {
      const auto begin = values.begin() + i * values.size() / gradient.indices.size();
      const auto end = values.begin() + (i + 1) * values.size() / gradient.indices.size();
      rows.emplace_back(gradient.indices[i], std::vector<float>(begin, end));
    }
    return rows;
  }

  SparseAccumulator accumulator;
  bool was_accepted = false;

 private:
  const DType dtype_;
  TakeLog<Accumulator> takes_{&accumulator};
};

}  // namespace lockstep::reference::test
