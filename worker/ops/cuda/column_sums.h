// Sums over the rows of a matrix of fixed shape, such as the gradient of a bias.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/status_macros.h"
#include "worker/ops/cuda/column_sums.cuh"
#include "worker/ops/cuda/cuda_context.h"

namespace lockstep::worker::cuda {

// The columns of a thread are a group.
inline int64_t NumColumnGroups(int64_t columns) {
  return columns % kColumnLanes == 0 ? columns / kColumnLanes : columns;
}

// The number of parts into which the rows are divided. One thread sums one part of one group. So
// many that a GPU's threads all have work, but each part has some rows.
inline int64_t NumColumnParts(int64_t rows, int64_t columns) {
  constexpr int64_t kThreads = 1 << 17;
  constexpr int64_t kRows = 32;
  return std::max<int64_t>(1, std::min(rows / kRows, kThreads / NumColumnGroups(columns)));
}

// T: of the matrix.
template <typename T>
class ColumnSumsOf {
 public:
  // `context` outlives it.
  static absl::StatusOr<ColumnSumsOf> Create(CudaContext* context, int64_t rows, int64_t columns) {
    ColumnSumsOf sums(context, rows, columns);
    LOCKSTEP_ASSIGN_OR_RETURN(sums.parts_,
                              LOCKSTEP_FIND_KERNEL_OF(context, T, lockstep_column_parts));
    LOCKSTEP_ASSIGN_OR_RETURN(sums.sum_, LOCKSTEP_FIND_KERNEL(context, lockstep_sum_column_parts));
    const int64_t parts = NumColumnParts(rows, columns) * columns;
    LOCKSTEP_RETURN_IF_ERROR(
        context->ReserveWorkspace(static_cast<size_t>(parts) * sizeof(double)));
    return sums;
  }

  // sums [columns] of matrix [rows, columns].
  void Launch(Stream* stream, float* sums, const T* matrix) const {
    auto* const parts = static_cast<double*>(context_->workspace());
    const int64_t num_parts = NumColumnParts(rows_, columns_);
    parts_->Launch(stream, num_parts * NumColumnGroups(columns_), parts, matrix, num_parts, rows_,
                   columns_);
    sum_->LaunchBlocks(stream, columns_, sums, parts, num_parts, columns_);
  }

 private:
  ColumnSumsOf(const CudaContext* context, int64_t rows, int64_t columns)
      : context_(context), rows_(rows), columns_(columns) {}

  const CudaContext* context_;
  int64_t rows_;
  int64_t columns_;
  // Set once it is created.
  std::optional<Kernel<LOCKSTEP_FUNCTION_OF(T, lockstep_column_parts)>> parts_;
  std::optional<Kernel<decltype(lockstep_sum_column_parts)>> sum_;
};

using ColumnSums = ColumnSumsOf<float>;

}  // namespace lockstep::worker::cuda
