// Running a model over a part of the test set: the one loop behind evaluation beside training and
// behind the offline tools.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/data/pipeline.h"
#include "worker/tower/tower.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

// The variables for a batch, among them the rows that it reads. Valid until it is evaluated.
using VariablesFor = absl::FunctionRef<absl::StatusOr<VariableValues>(const Batch&)>;

// The sizes of the batches that so many examples are read in, `batch` at a time: what the tower has
// to be made for.
std::vector<int64_t> BatchSizes(int64_t examples, int64_t batch);

// The sums over the examples [begin, end) of a test set with labels, `batch` at a time. Errors are
// those of TestSet::Read and `variables`.
absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                VariablesFor variables, int64_t begin, int64_t end,
                                                int64_t batch);
// With the same variables for all.
absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                const VariableValues& variables, int64_t begin,
                                                int64_t end, int64_t batch);

}  // namespace lockstep::worker
