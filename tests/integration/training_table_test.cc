// Jobs with a table, of which a step moves only the rows that its batch names, and whose variables
// may be split over the ps.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/table_job.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

nlohmann::json Run(int ps, int workers, const JobText& job,
                   const std::vector<std::string>& flags = {}) {
  Cluster cluster(ps, workers);
  cluster.StartAll(job, flags);
  return Finish(cluster);
}

TEST_CASE("a table trains to the same bits on any number of ps, whole or in parts") {
  const TableJob job;
  const nlohmann::json one = Run(1, 2, job.Text());
  const std::vector<double> losses = Losses(one);
  REQUIRE(losses.size() == 30);
  CHECK(losses.back() < losses.front());
  REQUIRE_FALSE(one["evaluations"].empty());
  for (const auto& [ps, more] : {std::pair{3, ""},
                                 {1, "max_part_bytes: 150"},
                                 {3, "max_part_bytes: 150"},
                                 {2, "max_part_bytes: 20"}}) {
    CAPTURE(ps, more);
    const nlohmann::json other = Run(ps, 2, job.Text(more), {"--fresh"});
    CHECK(Losses(other) == losses);
    // Also what the evaluation made of the averages.
    CHECK(other["evaluations"].back() == one["evaluations"].back());
  }
}

TEST_CASE("a table that changes in place has the same bits in messages and in shared memory") {
  const TableJob job;
  const auto run = [&job](int ps, const std::string& more) {
    JobText text = job.Text(more);
    text.optimizer = "adagrad {} learning_rate { base: 0.1 }";
    text.evaluation = "every_steps: 10 batch: 16";
    return Run(ps, 2, text, {"--fresh"});
  };
  const nlohmann::json plain = run(1, "transport { shared_memory: OFF }");
  const std::vector<double> losses = Losses(plain);
  REQUIRE(losses.size() == 30);
  CHECK(losses.back() < losses.front());
  REQUIRE_FALSE(plain["evaluations"].empty());
  for (const auto& [ps, more] : {std::pair{1, "transport { shared_memory: COPY }"},
                                 {1, "transport { shared_memory: MAP }"},
                                 {2, "transport { shared_memory: COPY } max_part_bytes: 150"}}) {
    CAPTURE(ps, more);
    const nlohmann::json other = run(ps, more);
    CHECK(Losses(other) == losses);
    CHECK(other["evaluations"].back() == plain["evaluations"].back());
  }
}

// One loss trains a table, the other one does not.
constexpr char kTwoLosses[] = R"(
  input_shape: [4]
  layers { name: "ids" inputs: "input" columns { first: 0 count: 3 } }
  layers { name: "a_rows" inputs: "ids" embedding { rows: 60 dim: 5 } }
  layers { name: "a_scores" dense { units: 3 } }
  layers { name: "a_loss" softmax_cross_entropy {} }
  layers { name: "number" inputs: "input" columns { first: 3 count: 1 } }
  layers { name: "b_scores" dense { units: 3 } }
  layers { name: "b_loss" softmax_cross_entropy {} })";

TEST_CASE("a table of a loss that takes turns has the same bits in messages and shared memory") {
  const TableJob job;
  const auto run = [&job](const std::string& memory) {
    JobText text = job.Text("transport { shared_memory: " + memory + " }");
    text.optimizer.clear();
    text.evaluation.clear();
    text.model = kTwoLosses;
    text.losses = R"(
      losses { name: "a" loss: "a_loss" trains: "a_" steps: 2
               optimizer { adagrad {} learning_rate { base: 0.1 } } }
      losses { name: "b" loss: "b_loss" trains: "b_" steps: 3
               optimizer { adagrad {} learning_rate { base: 0.1 } } })";
    return LossesOf(2, 2, text, {"--fresh"});
  };
  const std::vector<double> losses = run("OFF");
  CHECK(losses.size() == 30);
  CHECK(run("COPY") == losses);
  CHECK(run("MAP") == losses);
}

TEST_CASE("a checkpoint of parts is evaluated alone and goes on in other parts") {
  const TableJob job;
  const nlohmann::json summary = Run(2, 2, job.Text("max_part_bytes: 150"));
  const nlohmann::json& last = summary["evaluations"].back();
  const nlohmann::json alone = EvaluateAlone(job.Saved(30));
  CHECK(alone["accuracy"] == last["accuracy"]);
  CHECK(alone["loss"].get<double>() == Approx(last["loss"].get<double>()).epsilon(1e-6));
  const std::vector<double> losses = Losses(summary);
  const std::vector<double> rest(losses.begin() + 10, losses.end());
  for (const auto& [ps, more] : {std::pair{3, "max_part_bytes: 70"}, {1, ""}}) {
    CAPTURE(ps, more);
    CHECK(LossesOf(ps, 2, job.Text(more), {"--restore=" + job.Saved(10)}) == rest);
  }
}

TEST_CASE("an asynchronous job ends with its last gradient, evaluated and saved, and goes on") {
  const TableJob job;
  JobText text = job.Text("max_part_bytes: 150 towers: 2", 120);
  text.sync = "asynchronous { max_staleness: 30 }";
  const nlohmann::json summary = Run(2, 3, text);
  CHECK(summary["steps"] == 120);
  CHECK(summary["losses"].size() == 120);  // null where steps went by faster than the chief looked
  const nlohmann::json& evaluations = summary["evaluations"];
  CHECK(evaluations.back()["loss"].get<double>() < evaluations.front()["loss"].get<double>());
  CHECK(evaluations.back()["step"] == 120);
  const nlohmann::json alone = EvaluateAlone(job.Saved(120));
  CHECK(alone["accuracy"] == summary["evaluations"].back()["accuracy"]);
  text.max_steps = 150;
  const nlohmann::json longer = Run(3, 2, text, {"--restore=" + job.Saved(120)});
  CHECK(longer["start_step"] == 120);
  CHECK(longer["steps"] == 150);
}

}  // namespace
}  // namespace lockstep::test
