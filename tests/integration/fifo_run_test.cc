// Real jobs with TensorFlow's token queue: any worker may take any token.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr int kSteps = 300;

nlohmann::json Train(int workers, const std::string& sync) {
  Cluster cluster(2, workers);
  cluster.StartAll({.max_steps = kSteps, .sync = "token_policy: FIFO " + sync});
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["steps"] == kSteps);
  CHECK(summary["test_accuracy"] > 0.8);
  return summary;
}

// A step closes with at least `required` gradients. A worker sends one for each token that it
// takes, and its first without one; of these a step may count more than it requires, or drop them.
void CheckGradients(const nlohmann::json& summary, int required, int tokens, int workers) {
  const int64_t variables = summary["variables_per_gradient"];
  const int64_t accepted = summary["accepted"];
  const int64_t stale = summary["stale"];
  CHECK(accepted >= variables * required * kSteps);
  CHECK(accepted + stale <= variables * (int64_t{tokens} * kSteps + workers));
}

TEST_CASE("FIFO: the workers of a job share its tokens") { CheckGradients(Train(2, ""), 2, 2, 2); }

TEST_CASE("FIFO: more gradients per step than there are workers") {
  const int workers = GENERATE(1, 2);
  CAPTURE(workers);
  CheckGradients(Train(workers, "replicas_to_aggregate: 5"), 5, 5, workers);
}

TEST_CASE("FIFO: fewer gradients per step than there are workers") {
  CheckGradients(Train(3, "replicas_to_aggregate: 2"), 2, 3, 3);
}

}  // namespace
}  // namespace lockstep::test
