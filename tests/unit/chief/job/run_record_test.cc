#include "chief/job/run_record.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

RunRecord Evaluated(const std::vector<int64_t>& versions) {
  RunRecord record;
  for (const int64_t version : versions) {
    record.AddEvaluation({.version = GlobalStep(version), .examples = 10});
  }
  return record;
}

std::vector<int64_t> Versions(const RunRecord& record) {
  std::vector<int64_t> versions;
  for (const EvaluationTotals& totals : record.evaluations) {
    versions.push_back(totals.version.value());
  }
  return versions;
}

TEST_CASE("a run that goes back keeps what was found of the steps that it keeps") {
  RunRecord before = Evaluated({5, 10, 15});
  before.checkpoint = "c/ckpt-12";
  before.save_error = "no space";
  before.warnings.Add("look");
  RunRecord record;
  record.start = GlobalStep(10);
  record.GoOnFrom(before, "c/ckpt-10");
  CHECK(Versions(record) == std::vector<int64_t>{5, 10});
  CHECK(record.checkpoint == "c/ckpt-10");
  CHECK(record.save_error == "no space");
  CHECK(record.warnings.newest().size() == 1);
}

TEST_CASE("a run that goes back to what it was restored from has saved nothing yet") {
  RunRecord record;
  record.GoOnFrom(RunRecord(), "elsewhere/ckpt-10");
  CHECK(record.checkpoint.empty());
}

TEST_CASE("of two evaluations of a version the last one counts") {
  RunRecord record = Evaluated({5, 10});
  record.AddEvaluation({.version = GlobalStep(5), .examples = 99});
  CHECK(Versions(record) == std::vector<int64_t>{5, 10});
  CHECK(record.evaluations.front().examples == 99);
}

}  // namespace
}  // namespace lockstep::chief
