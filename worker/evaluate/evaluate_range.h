// Running a model over a part of the test set: the one loop behind evaluation beside training and
// behind the offline tools.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/data/pipeline.h"
#include "worker/tower/tower.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

// The variables for a batch, among them the rows that it reads. Valid until it is evaluated.
using VariablesFor = absl::FunctionRef<absl::StatusOr<VariableValues>(const Batch&)>;

// The sums over the examples [begin, end) of a test set with labels, `batch` at a time (at most
// what the tower was made for). Errors are those of TestSet::Read and `variables`.
absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                VariablesFor variables, int64_t begin, int64_t end,
                                                int64_t batch);
// With the same variables for all.
absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                const VariableValues& variables, int64_t begin,
                                                int64_t end, int64_t batch);

}  // namespace lockstep::worker
