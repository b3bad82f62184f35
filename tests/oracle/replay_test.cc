// The replay itself: what counts as equal, which files are read, what is said about bad ones.
#include "tests/oracle/replay.h"

#include <catch2/catch.hpp>
#include <limits>
#include <sstream>

#include "tests/oracle/comparison.h"
#include "tests/oracle/report.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr char kSchedule[] =
    R"({"kind": "schedule", "name": "one",
        "spec": {"schedule": "piecewise", "boundaries": [2], "values": [1.0, 0.5]},
        "values": [[0, 1.0], [2, 1.0], [3, %s]]})";

std::string ScheduleThatEndsAt(const std::string& rate) {
  std::string text = kSchedule;
  text.replace(text.find("%s"), 2, rate);
  return text;
}

bool IsNear(DType dtype, const std::vector<double>& expected, const std::vector<double>& got) {
  Comparison comparison;
  comparison.Near("x", dtype, expected, got);
  return comparison.differences().empty();
}

// What a report says about the scripts of the folder.
std::string ReportOn(const test::TemporaryFolder& folder) {
  const auto scripts = ReadScripts(folder.path());
  REQUIRE(scripts.ok());
  std::ostringstream out;
  Report report(&out);
  for (const Script& script : *scripts) report.Add(script);
  report.Close();
  return out.str();
}

TEST_CASE("the tolerance is a share of the tensor's largest magnitude") {
  CHECK(IsNear(DType::kFloat32, {100, 1}, {100, 1.00009}));
  CHECK_FALSE(IsNear(DType::kFloat32, {100, 1}, {100, 1.00011}));
  CHECK_FALSE(IsNear(DType::kFloat32, {1, 1}, {1, 1.00009}));
  CHECK(IsNear(DType::kFloat64, {1}, {1 + 0.9e-12}));
  CHECK_FALSE(IsNear(DType::kFloat64, {1}, {1 + 1.1e-12}));
  CHECK(IsNear(DType::kFloat16, {1}, {1}));
  CHECK_FALSE(IsNear(DType::kFloat16, {1}, {1.0009765625}));
  CHECK_FALSE(IsNear(DType::kFloat32, {0}, {1e-30}));
}

TEST_CASE("of a variable that training changes, of the largest that it has had") {
  Comparison comparison;
  comparison.NearSoFar("x", {0.01}, {0.01 + 6e-8});
  CHECK(comparison.differences().size() == 1);
  comparison.NearSoFar("y", {1}, {1});
  comparison.NearSoFar("y", {0.01}, {0.01 + 4e-6});
  CHECK(comparison.differences().size() == 1);
  comparison.NearSoFar("y", {0.01}, {0.01 + 6e-6});
  CHECK(comparison.differences().size() == 2);
}

TEST_CASE("what is not finite is near to itself alone") {
  CHECK(IsNear(DType::kFloat32, {kNan, kInfinity}, {kNan, kInfinity}));
  CHECK_FALSE(IsNear(DType::kFloat32, {kNan}, {1}));
  CHECK_FALSE(IsNear(DType::kFloat32, {1}, {kNan}));
  CHECK_FALSE(IsNear(DType::kFloat32, {kInfinity}, {-kInfinity}));
  CHECK_FALSE(IsNear(DType::kFloat32, {1, kInfinity}, {kInfinity, kInfinity}));
}

TEST_CASE("a tensor of another size differs, and the worst share is kept") {
  Comparison comparison;
  comparison.Near("x", DType::kFloat32, {2}, {2.000001});
  CHECK(comparison.worst_share() == Approx(0.5));
  comparison.Near("x", DType::kFloat32, {1, 2}, {1});
  CHECK(comparison.differences().size() == 1);
}

TEST_CASE("all files of a folder are read, single scripts and lists of them") {
  const test::TemporaryFolder folder;
  const std::string line = R"({"kind": "schedule", "name": "n"})";
  folder.Write("b.json", ScheduleThatEndsAt("0.5"));
  folder.Write("a.jsonl", line + "\n\n" + line + "\n");
  folder.Write("notes.txt", "not a script");
  const auto scripts = ReadScripts(folder.path());
  REQUIRE(scripts.ok());
  REQUIRE(scripts->size() == 3);
  CHECK((*scripts)[0].place == "a.jsonl:1 (n)");
  CHECK((*scripts)[1].place == "a.jsonl:3 (n)");
  CHECK((*scripts)[2].place == "b.json (one)");
}

TEST_CASE("files that are no scripts are named") {
  const test::TemporaryFolder folder;
  CHECK(ReadScripts(folder.path()).status().code() == absl::StatusCode::kNotFound);
  CHECK(ReadScripts(folder.Path("none")).status().code() == absl::StatusCode::kNotFound);
  folder.Write("list.jsonl", "{}\n[1]\n");
  const absl::Status status = ReadScripts(folder.path()).status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(status.message()), Catch::Contains("list.jsonl:2"));
}

TEST_CASE("a report names script, entry, what was expected and what came") {
  const test::TemporaryFolder folder;
  folder.Write("good.json", ScheduleThatEndsAt("0.5"));
  folder.Write("wrong.json", ScheduleThatEndsAt("0.25"));
  const std::string text = ReportOn(folder);
  CHECK_THAT(text, Catch::Contains("wrong.json (one)\n  log entry 2, rate at step 3[0]: expected "
                                   "0.25, got 0.5"));
  CHECK_THAT(text, !Catch::Contains("good.json"));
  CHECK_THAT(text, Catch::EndsWith("\n1 passed, 1 failed\n"));
}

TEST_CASE("a script that cannot be replayed fails, saying why") {
  const auto said = [](const std::string& script) {
    const test::TemporaryFolder folder;
    folder.Write("bad.json", script);
    const std::string text = ReportOn(folder);
    CHECK_THAT(text, Catch::EndsWith("0 passed, 1 failed\n"));
    CHECK_THAT(text, Catch::Contains("cannot be replayed"));
    return text;
  };
  CHECK_THAT(said("{}"), Catch::Contains("no kind of script is called \"\""));
  CHECK_THAT(said(R"({"kind": 3})"), Catch::Contains("no kind of script is called \"\""));
  CHECK_THAT(said(R"({"kind": "dance"})"), Catch::Contains("\"dance\""));
  CHECK_THAT(said(R"({"kind": "training"})"), Catch::Contains("sparse"));
  CHECK_THAT(said(R"({"kind": "schedule", "spec": {"schedule": "zigzag"}})"),
             Catch::Contains("learning_rate"));
  CHECK_THAT(said(R"({"kind": "clipping", "op": "norm", "clip": 1, "norm": null,
                      "tensors": [[[1, 2], [3]]], "clipped": [[[1, 2], [3]]]})"),
             Catch::Contains("expected 4 elements"));
}

}  // namespace
}  // namespace lockstep::oracle
