// Running a model over a part of the test set: the one loop behind evaluation beside training and
// behind the offline tools.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "worker/data/pipeline.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

// The sums over the examples [begin, end) of a test set with labels, `batch` at a time (at most
// what the tower was made for). Errors are those of TestSet::Read.
absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                const VariableValues& variables, int64_t begin,
                                                int64_t end, int64_t batch);

}  // namespace lockstep::worker
