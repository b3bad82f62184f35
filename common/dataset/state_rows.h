// The rows of a model's state inputs, from files beside those of the examples: one row for each
// sequence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/example_spec.h"
#include "common/dataset/records.h"
#include "common/tensor/tensor.h"
#include "proto/job.pb.h"

namespace lockstep {

// The rows of one state input that belong to one file of examples.
struct StateFile {
  std::string path;  // empty: each row is 0
  bool header = true;
};

// INVALID_ARGUMENT where the names of data.state_inputs are not those of the model's.
absl::Status CheckStateInputs(const DataDef& data, const ExampleSpec& spec);

// By file of examples, then in the order of data.state_inputs. INVALID_ARGUMENT where a state input
// has neither zeros nor as many files.
absl::StatusOr<std::vector<std::vector<StateFile>>> TrainStateFiles(const DataDef& data,
                                                                    size_t num_files);
absl::StatusOr<std::vector<StateFile>> TestStateFiles(const DataDef& data);

// Reads all rows; none for zeros. NOT_FOUND for a missing file; DATA_LOSS for wrong bytes, for a
// file without rows, and for files with unequally many rows, which it names.
absl::StatusOr<std::vector<Records>> ReadStateRows(const std::vector<StateFile>& files);

// How many rows of a file of examples make one sequence: with `rows` of examples, rows divided by
// those of the states; 1 without rows of states. DATA_LOSS naming both files and their rows where
// that is no whole number.
absl::StatusOr<int64_t> RowsPerSequence(const std::string& examples, int64_t rows,
                                        const std::vector<StateFile>& files,
                                        const std::vector<Records>& states);

// Of an example that is so many rows of a file, from the shape of a row. INVALID_ARGUMENT as
// Shape::Create.
absl::StatusOr<Shape> ShapeOfRows(int64_t rows_per_sequence, const Shape& row);

// From the order of data.state_inputs to that of the model: float32 [rows, units], empty for zeros.
// The names have been checked. INVALID_ARGUMENT naming the state input for rows of another shape.
absl::StatusOr<std::vector<Tensor>> MakeStates(const DataDef& data,
                                               const std::vector<Records>& states,
                                               const ExampleSpec& spec);

}  // namespace lockstep
