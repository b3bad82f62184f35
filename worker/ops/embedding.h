// Looks up the row of a table for each index of an example, and puts the rows side by side or adds
// them up. Variable: table [rows, dim], or some rows of it (ForwardArgs::rows). An index is a whole
// number in [0, rows) whose row is there; worker/data checks it.
//
// The gradient of a row is the sum over its occurrences in the order of the examples, whatever the
// number of threads. Indices have none.
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

enum class EmbeddingCombiner { kConcatenate, kSum };

struct EmbeddingOptions : OpOptions {
  static constexpr absl::string_view kKind = "embedding";
  int64_t rows = 1;
  int64_t dim = 1;
  int64_t indices = 1;  // per example
  EmbeddingCombiner combiner = EmbeddingCombiner::kConcatenate;
};

}  // namespace lockstep::worker
