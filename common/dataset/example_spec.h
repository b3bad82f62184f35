// ExampleSpec describes the data that a model expects. Other files are refused before training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/shape.h"

namespace lockstep {

struct ExampleSpec {
  Shape input_shape;
  bool classifier = true;
  int64_t num_outputs = 0;  // labels are 0 .. num_outputs - 1; or regression targets per example
  // Columns [first, first + count) of an example of rank 1 must be whole numbers in [0, rows).
  struct RowIndices {
    int64_t first = 0;
    int64_t count = 0;
    int64_t rows = 0;
  };
  std::vector<RowIndices> row_indices;
  int64_t labels_per_example = 1;       // of a classifier: one, or one for each time step
  bool uses_labels = true;              // false: nobody reads the labels that files have
  bool predicts_probabilities = false;  // no classifier: targets are from 0 to 1
  // Rows that come with each example, in the model's order.
  struct StateRow {
    std::string name;
    int64_t units = 0;
  };
  std::vector<StateRow> state_inputs;
};

}  // namespace lockstep
