#include "deploy/cli/summary.h"

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("a summary is read and told") {
  const test::TemporaryFolder folder;
  const auto summary = ReadSummary(
      folder.Write("s.json", R"({"test_accuracy": 0.98765, "steps": 1200, "train_seconds": 75.2,
                    "examples_per_second": 1532.4, "accepted": 4800, "stale": 12,
                    "checkpoint": "/r/ckpt-1200"})"));
  REQUIRE(summary.ok());
  CHECK(summary->steps == 1200);
  const std::string text = SummaryText(*summary);
  CHECK_THAT(text, Contains("1,200 steps in 1:15, 1,532 examples/s"));
  CHECK_THAT(text, Contains("4,800 accepted, 12 stale"));
  CHECK_THAT(text, Contains("98.77 %"));
  CHECK_THAT(text, Contains("/r/ckpt-1200"));
}

TEST_CASE("gradients in a summary are those of workers") {
  Summary summary;
  summary.accepted = 10800;
  summary.stale = 4573;
  summary.variables_per_gradient = 9;
  CHECK_THAT(SummaryText(summary), Contains("gradients: 1,200 accepted, 508 stale\n"));
}

TEST_CASE("a regression's summary ends with its test loss") {
  const test::TemporaryFolder folder;
  const auto summary = ReadSummary(folder.Write("s.json", R"({"steps": 1, "loss": 0.5,
      "test_accuracy": null, "test_loss": 2.0529,
      "evaluations": [{"step": 1, "examples": 30, "accuracy": null, "loss": 2.0529,
                       "averages": true, "regression": true}]})"));
  REQUIRE(summary.ok());
  CHECK_THAT(SummaryText(*summary),
             StartsWith("trained 1 step in ") &&
                 Contains("training loss  0.5000\ntest loss      2.0529 (averages)\n") &&
                 !Contains("accuracy"));
  REQUIRE(summary->evaluations.size() == 1);
  CHECK(summary->evaluations[0].regression());
  CHECK(DivergenceWarning(*summary).empty());
}

TEST_CASE("the summary of a text tells the bits of a character") {
  const test::TemporaryFolder folder;
  const auto summary = ReadSummary(folder.Write("s.json", R"({"steps": 1,
      "test_bits_per_character": 2.3456, "evaluations": [{"step": 1, "loss": 1.6258}]})"));
  REQUIRE(summary.ok());
  CHECK_THAT(SummaryText(*summary), Contains("\nbits per character  2.346\n"));
}

TEST_CASE("a diverged run's summary has its last loss and a warning") {
  const test::TemporaryFolder folder;
  const auto summary = ReadSummary(folder.Write("s.json", R"({"steps": 200, "loss": null,
      "test_accuracy": 0.039, "warnings": [{"number": 1, "text": "the loss of step 2"}]})"));
  REQUIRE(summary.ok());
  CHECK_THAT(SummaryText(*summary), Contains("training loss  nan\ntest accuracy  3.90 %\n"));
  CHECK_THAT(DivergenceWarning(*summary),
             StartsWith("warning: training has diverged: the last loss is nan") &&
                 Contains("Remedy: lower the learning rate"));
  REQUIRE(summary->warnings.size() == 1);
  CHECK(summary->warnings[0].text() == "the loss of step 2");
}

TEST_CASE("a run that did no step has no loss and has not diverged") {
  const test::TemporaryFolder folder;
  const auto summary =
      ReadSummary(folder.Write("s.json", R"({"steps": 200, "start_step": 200, "loss": null})"));
  REQUIRE(summary.ok());
  CHECK_THAT(SummaryText(*summary), !Contains("loss"));
  CHECK(DivergenceWarning(*summary).empty());
}

TEST_CASE("the summary of a restored job tells of the steps of this run") {
  const test::TemporaryFolder folder;
  const auto summary =
      ReadSummary(folder.Write("s.json", R"({"steps": 1200, "start_step": 1000})"));
  REQUIRE(summary.ok());
  CHECK_THAT(SummaryText(*summary), Contains("trained 200 steps (1,000 to 1,200)"));
}

TEST_CASE("a job without evaluation and checkpoint has neither in its summary") {
  const test::TemporaryFolder folder;
  const auto summary = ReadSummary(
      folder.Write("s.json", R"({"test_accuracy": null, "steps": 3, "checkpoint": ""})"));
  REQUIRE(summary.ok());
  CHECK(SummaryText(*summary).find("accuracy") == std::string::npos);
  CHECK(SummaryText(*summary).find("checkpoint") == std::string::npos);
}

TEST_CASE("a summary that is missing or malformed is an error with its path") {
  const test::TemporaryFolder folder;
  CHECK(ReadSummary(folder.Path("none")).status().code() == absl::StatusCode::kNotFound);
  const auto malformed = ReadSummary(folder.Write("s.json", "{\"steps\": 3"));
  CHECK(malformed.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(malformed.status().message()), Contains("s.json"));
}

}  // namespace
}  // namespace lockstep::deploy
