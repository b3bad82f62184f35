// Random matrices with orthonormal rows or columns, for recurrent kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace lockstep {

// Row-major [rows, columns]; whichever are fewer, rows or columns, are orthonormal. By Gram and
// Schmidt from the numbers `normal` of elements 0, 1, ..., which are to be of a standard normal
// distribution: the matrix then is uniform among all of its kind. Takes
// 2 * rows * columns * min(rows, columns) additions and products.
std::vector<double> OrthogonalMatrix(int64_t rows, int64_t columns,
                                     absl::FunctionRef<double(uint64_t element)> normal);

}  // namespace lockstep
