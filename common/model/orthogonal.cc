#include "common/model/orthogonal.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

std::vector<double> OrthogonalMatrix(int64_t rows, int64_t columns,
                                     absl::FunctionRef<double(uint64_t element)> normal) {
  const int64_t count = std::min(rows, columns);
  const int64_t length = std::max(rows, columns);
  std::vector<double> vectors(count * length);  // one after another
  for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = normal(i);
  for (int64_t v = 0; v < count; ++v) {
    double* const vector = &vectors[v * length];
    for (int64_t e = 0; e < v; ++e) {
      const double* const earlier = &vectors[e * length];
      double product = 0;
      for (int64_t i = 0; i < length; ++i) product += vector[i] * earlier[i];
      for (int64_t i = 0; i < length; ++i) vector[i] -= product * earlier[i];
    }
    double square = 0;
    for (int64_t i = 0; i < length; ++i) square += vector[i] * vector[i];
    for (int64_t i = 0; i < length; ++i) vector[i] /= std::sqrt(square);
  }
  if (rows <= columns) return vectors;
  std::vector<double> matrix(vectors.size());
  for (int64_t v = 0; v < count; ++v) {
    for (int64_t i = 0; i < length; ++i) matrix[i * count + v] = vectors[v * length + i];
  }
  return matrix;
}

}  // namespace lockstep
