// Reference layers: each is written straight from its definition.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/array.h"

namespace lockstep::reference {

// x [..., in] W [in, units] + b [units]; b may be empty.
Array Dense(const Array& x, const Array& kernel, const Array& bias);

// A window that slides along one dimension of an image.
struct Sliding {
  int64_t window = 1;
  int64_t stride = 1;
  int64_t pad_before = 0;
  int64_t output = 1;

  // TensorFlow's SAME: ceil(input / stride) positions, the odd zero at the end.
  static Sliding Same(int64_t input, int64_t window, int64_t stride);
  static Sliding Valid(int64_t input, int64_t window, int64_t stride);
};

// x [n, h, w, in], kernel [kh, kw, in, filters], bias [filters] or empty.
Array Conv2D(const Array& x, const Array& kernel, const Array& bias, const Sliding& vertical,
             const Sliding& horizontal);

Array MaxPool(const Array& x, const Sliding& vertical, const Sliding& horizontal);
// Pixels outside of the image are not counted.
Array AveragePool(const Array& x, const Sliding& vertical, const Sliding& horizontal);

Array Relu(Array x);
Array Tanh(Array x);
Array Sigmoid(Array x);

// Mean and biased variance over all dimensions but the last.
struct Moments {
  Array mean;
  Array variance;
};
Moments MomentsOf(const Array& x);
Array Normalise(Array x, const Moments& moments, const Array& gamma, const Array& beta,
                double epsilon);

Array Add(const std::vector<Array>& terms);
Array Concatenate(const std::vector<Array>& parts);  // along the last dimension

Array Columns(const Array& x, int64_t first, int64_t count);  // of the last dimension

// Rows of `table` [rows, dim] by indices [n, k]: side by side [n, k * dim], or their sum [n, dim].
Array Embedding(const Array& indices, const Array& table, bool sum);

// Keras's LSTM and GRU (reset_after). inputs: x [n, time, in], then optionally the initial states
// [n, units]: h and c, or h. variables: kernel, recurrent kernel, optionally bias. All steps
// [n, time, units], or the last.
Array Lstm(const std::vector<Array>& inputs, const std::vector<Array>& variables, bool sequences);
Array Gru(const std::vector<Array>& inputs, const std::vector<Array>& variables, bool sequences);

Array Softmax(Array scores);  // of each row
// Means over the rows.
double SoftmaxCrossEntropy(const Array& scores, const std::vector<int32_t>& labels);
// The mean over all logits, by the textbook's formula. Only for logits that are not large.
double SigmoidCrossEntropy(const Array& logits, const Array& targets);
double L2Loss(const Array& outputs, const Array& targets);

}  // namespace lockstep::reference
