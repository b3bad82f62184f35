// A tensor of doubles, row-major, for references that are read rather than run fast.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"

namespace lockstep::reference {

struct Array {
  std::vector<int64_t> dims;
  std::vector<double> values;

  Array() = default;
  // Zeros.
  explicit Array(std::vector<int64_t> dims);
  // Values in [-1, 1) that depend on the name alone.
  static Array Random(std::vector<int64_t> dims, absl::string_view name);

  int64_t size() const { return static_cast<int64_t>(values.size()); }
  int64_t rows() const { return size() / dims.back(); }  // all dimensions but the last
  // Of an image batch [n, height, width, channels].
  double& at(int64_t n, int64_t y, int64_t x, int64_t c) { return values[Index(n, y, x, c)]; }
  double at(int64_t n, int64_t y, int64_t x, int64_t c) const { return values[Index(n, y, x, c)]; }

 private:
  int64_t Index(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return ((n * dims[1] + y) * dims[2] + x) * dims[3] + c;
  }
};

// Rounded to float.
Tensor ToTensor(const Array& array);
Array ToArray(TensorView tensor);

// The greatest distance of two arrays of one size, as a part of the largest magnitude in `wanted`
// (or 1, if that is less).
double Distance(const Array& got, const Array& wanted);

}  // namespace lockstep::reference
