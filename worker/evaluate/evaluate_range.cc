#include "worker/evaluate/evaluate_range.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

std::vector<int64_t> BatchSizes(int64_t examples, int64_t batch) {
  std::vector<int64_t> sizes;
  if (examples >= batch) sizes.push_back(batch);
  if (examples % batch != 0) sizes.push_back(examples % batch);
  return sizes;
}

absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                VariablesFor variables, int64_t begin, int64_t end,
                                                int64_t batch) {
  LOCKSTEP_CHECK(batch > 0);
  Tower::Evaluation sum;
  for (int64_t at = begin; at < end; at += batch) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Batch examples, test_set.Read(at, std::min(end, at + batch)));
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableValues values, variables(examples));
    LOCKSTEP_ASSIGN_OR_RETURN(const Tower::Evaluation part, tower->Evaluate(examples, values));
    sum.examples += part.examples;
    sum.correct += part.correct;
    sum.loss_sum += part.loss_sum;
  }
  return sum;
}

absl::StatusOr<Tower::Evaluation> EvaluateRange(Tower* tower, const TestSet& test_set,
                                                const VariableValues& variables, int64_t begin,
                                                int64_t end, int64_t batch) {
  const auto the_same = [&variables](const Batch&) -> absl::StatusOr<VariableValues> {
    return variables;
  };
  return EvaluateRange(tower, test_set, VariablesFor(the_same), begin, end, batch);
}

}  // namespace lockstep::worker
