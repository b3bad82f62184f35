// Sequences of characters, cut from a text file as TextFile of the job says.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/dataset/example_table.h"
#include "common/tensor/shape.h"
#include "proto/job.pb.h"

namespace lockstep {

struct TextMeasure {
  int64_t train = 0;  // sequences
  int64_t test = 0;
  std::string characters;  // in the order of their numbers: TextFile's, or all that occur
  Shape shape;             // of a sequence: [length]
};

// Reads all of the file. INVALID_ARGUMENT naming the field for a length below 1, a share that is
// none, a text too short for one sequence, a character twice among those of TextFile, and one that
// is none of them; otherwise as ByteSource and CheckRoomForData.
absl::StatusOr<TextMeasure> MeasureText(const TextFile& text);

// One split: features and labels are character numbers, uint8, of shape [length]. Label i of a
// sequence is its character i + 1. Errors as MeasureText; INVALID_ARGUMENT where there is no test
// set.
absl::StatusOr<ExampleTable> ReadText(const TextFile& text, Split split);

}  // namespace lockstep
