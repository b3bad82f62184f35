#include "common/config/cluster_reader.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kJson[] = R"({"ps": ["a:1", "b:2"], "worker": ["w:1", "w:2"], "chief": ["c:1"]})";

absl::StatusOr<ClusterSpec> ReadText(const std::string& text) {
  test::TemporaryFolder folder;
  return ReadClusterFile(folder.Write("cluster", text));
}

std::string ErrorOf(const std::string& text) {
  const auto spec = ReadText(text);
  REQUIRE_FALSE(spec.ok());
  CHECK(ExitCodeFor(spec.status()) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(spec.status().message()), Contains("/cluster:") && Contains("Remedy: "));
  return std::string(spec.status().message());
}

std::string TfError(const std::string& text) {
  const auto config = ReadTfConfig(text);
  REQUIRE_FALSE(config.ok());
  CHECK(ExitCodeFor(config.status()) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(config.status().message()), Catch::StartsWith("TF_CONFIG:"));
  CHECK_THAT(std::string(config.status().message()), Contains("Remedy: "));
  return std::string(config.status().message());
}

TEST_CASE("Every way to write a cluster means the same") {
  const auto expected = ReadText(kJson);
  REQUIRE(expected.ok());
  for (const std::string& text : {
           std::string(R"({"cluster": )") + kJson + "}",
           std::string("\xEF\xBB\xBF\n ") + kJson,
           std::string(R"({"ps": {"1": "b:2", "0": "a:1"}, "worker": {"0": "w:1", "1": "w:2"},
                           "chief": "c:1"})"),
           std::string(R"({"cluster": {"ps": ["a:1", "b:2"], "worker": ["w:1", "w:2"],
                           "master": {"0": "c:1"}, "evaluator": ["e:1"]},
                           "task": {"type": "worker", "index": 0}, "environment": "cloud"})"),
           std::string(R"(ps: "a:1" ps: "b:2" worker: ["w:1", "w:2"] chief: "c:1" # text proto)"),
       }) {
    CAPTURE(text);
    const auto spec = ReadText(text);
    REQUIRE(spec.ok());
    CHECK(spec->Canonical() == expected->Canonical());
  }
}

TEST_CASE("Every way to write several chiefs means the same") {
  for (const std::string& text : {
           std::string(R"({"ps": ["a:1"], "worker": ["w:1"], "chief": ["c:1", "d:2"]})"),
           std::string(R"({"ps": ["a:1"], "worker": ["w:1"], "chief": {"1": "d:2", "0": "c:1"}})"),
           std::string(
               R"({"cluster": {"ps": ["a:1"], "worker": ["w:1"], "master": ["c:1", "d:2"]}})"),
           std::string(R"(ps: "a:1" worker: "w:1" chief: "c:1" chief: "d:2")"),
       }) {
    CAPTURE(text);
    const auto spec = ReadText(text);
    REQUIRE(spec.ok());
    CHECK(spec->chiefs() == std::vector<std::string>{"c:1", "d:2"});
    CHECK(spec->Canonical() == "chief c:1\nchief 1 d:2\nps 0 a:1\nworker 0 w:1\n");
    CHECK(spec->Count(Role::kChief) == 2);
    CHECK(spec->AddressOf(Role::kChief, 0) == "c:1");
    CHECK(spec->AddressOf(Role::kChief, 1) == "d:2");
  }
}

TEST_CASE("A map of more than ten tasks is in the order of numbers, not of text") {
  std::string workers;
  for (int i = 11; i >= 0; --i) {
    workers += "\"" + std::to_string(i) + "\": \"w:" + std::to_string(100 + i) + "\"";
    if (i > 0) workers += ",";
  }
  const auto spec = ReadText(R"({"ps": ["a:1"], "chief": "c:1", "worker": {)" + workers + "}}");
  REQUIRE(spec.ok());
  for (int i = 0; i < 12; ++i) CHECK(spec->workers[i] == "w:" + std::to_string(100 + i));
}

TEST_CASE("A missing file is not found") {
  const auto spec = ReadClusterFile("/nowhere/cluster.json");
  REQUIRE_FALSE(spec.ok());
  CHECK(ExitCodeFor(spec.status()) == ExitCode::kInputNotFound);
  CHECK_THAT(std::string(spec.status().message()), Contains("/nowhere/cluster.json: "));
}

TEST_CASE("A cluster cut off anywhere is an error, never a smaller cluster") {
  const std::string text = kJson;
  for (size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(ReadText(text.substr(0, length)).ok());
  }
}

TEST_CASE("Malformed JSON names line and column") {
  CHECK_THAT(ErrorOf("{\"ps\": [\"a:1\"],\n \"worker\": [\"w:1\" \"w:2\"]}"),
             Contains("/cluster:2:23: not JSON: unexpected string literal; expected ']'"));
  CHECK_THAT(ErrorOf("{\"ps\": [\"a:1\"]"), Contains("unexpected end of input"));
  CHECK_THAT(ErrorOf(R"({"ps": ["a:1"], "ps": ["b:1"], "worker": ["w:1"], "chief": "c:1"})"),
             Contains("the key \"ps\" is given twice"));
}

TEST_CASE("Brackets in a million levels are refused") {
  for (const char* member :
       {"\"task\": ", "\"task\": {\"type\": \"ps\", \"index\": ", "\"other\": "}) {
    const std::string text =
        absl::StrCat(R"({"cluster": {}, )", member, std::string(1'000'000, '['));
    CHECK_THAT(ErrorOf(text), Contains("unexpected end of input"));
    CHECK_THAT(
        ErrorOf(absl::StrCat(text, std::string(1'000'000, ']'), member[8] == '{' ? "}}" : "}")),
        Contains("nested deeper than 16 levels. Remedy: write "));
  }
}

TEST_CASE("The wrong form names the entry") {
  struct Case {
    const char* text;
    const char* error;
  };
  for (const Case& c : {
           Case{"", "it is empty"},
           Case{"[1]", "expected a JSON object, got array"},
           Case{R"({"cluster": []})", "cluster: expected an object"},
           Case{R"({"wroker": ["a:1"]})", "unknown job \"wroker\"; did you mean \"worker\"?"},
           Case{R"({"trainer": ["a:1"]})", "unknown job \"trainer\". Remedy: use ps"},
           Case{R"({"ps": 7})", "ps: expected a list of \"host:port\", got number"},
           Case{R"({"ps": ["a:1", 7]})", "ps[1]: expected a string \"host:port\", got number"},
           Case{R"({"ps": {"0": null}})", "ps[0]: expected a string \"host:port\", got null"},
           Case{R"({"ps": {"zero": "a:1"}})", "as keys, got \"zero\""},
           Case{R"({"ps": {"00": "a:1"}})", "as keys, got \"00\""},
           Case{R"({"ps": {"-1": "a:1"}})", "as keys, got \"-1\""},
           Case{R"({"worker": {"0": "a:1", "2": "b:1"}})",
                "worker: it has 2 tasks but none with index 1"},
           Case{R"({"chief": "a:1", "master": "b:1"})", "master is another name for chief"},
           Case{R"({"ps": ["a:1"], "worker": ["w:1"], "chief": ["c:1", "c:1"]})",
                "chief and chief 1 have the same address"},
           Case{R"({"ps": [], "worker": ["w:1"], "chief": "c:1"})", "there is no ps"},
           Case{R"({"ps": ["a:1"], "worker": ["a:1"], "chief": "c:1"})", "the same address"},
           Case{R"({"task": {"type": "ps", "index": 0}})", "there is no \"cluster\""},
           Case{"pss: \"a:1\"",
                ":1:1: unknown field \"pss\" in the cluster spec; did you mean \"ps\"?"},
       }) {
    CAPTURE(c.text);
    CHECK_THAT(ErrorOf(c.text), Contains(c.error));
  }
}

TEST_CASE("Deep nesting is an error like any other") {
  CHECK_FALSE(ReadText("{\"ps\":" + std::string(200000, '[')).ok());
  CHECK_FALSE(ReadText("{\"ps\":" + std::string(20000, '[') + std::string(20000, ']') + "}").ok());
}

TEST_CASE("TF_CONFIG says who the task is") {
  const std::string cluster = std::string(R"({"cluster": )") + kJson + R"(, "task": )";
  const auto config =
      ReadTfConfig(cluster + R"({"type": "worker", "index": 1}, "rpc_layer": "x"})");
  REQUIRE(config.ok());
  REQUIRE(config->task.has_value());
  CHECK(config->task->role == Role::kWorker);
  CHECK(config->task->index == 1);
  CHECK(ReadTfConfig(cluster + R"({"type": "ps", "index": "1"}})")->task->index == 1);
  CHECK(ReadTfConfig(cluster + R"({"type": "master", "index": 0}})")->task->role == Role::kChief);
  CHECK_FALSE(ReadTfConfig(std::string(R"({"cluster": )") + kJson + "}")->task.has_value());

  CHECK_THAT(TfError(cluster + R"({"type": "evaluator", "index": 0}})"), Contains("no evaluator"));
  CHECK_THAT(TfError(cluster + R"({"type": "gpu", "index": 0}})"), Contains("got \"gpu\""));
  CHECK_THAT(TfError(cluster + R"({"index": 0}})"), Contains("task: expected {"));
  for (const char* index :
       {"-1", "1.5", "\"one\"", "null", "[]", "18446744073709551615", "\"-1\""}) {
    CAPTURE(index);
    CHECK_THAT(TfError(cluster + R"({"type": "ps", "index": )" + index + "}}"),
               Contains("task.index: expected 0, 1, 2, ..."));
  }
}

TEST_CASE("TF_CONFIG without a chief says how to name one") {
  CHECK_THAT(TfError(R"({"cluster": {"ps": ["a:1"], "worker": ["w:1"]},
                         "task": {"type": "worker", "index": 0}})"),
             Contains("there is no chief. Remedy: name one, \"chief\": [\"host:port\"]"));
  CHECK_THAT(TfError("{}"), Contains("there is no ps"));
  CHECK_THAT(TfError(""), Contains("1:1: not JSON: unexpected end of input"));
  CHECK_THAT(TfError("{\"cluster\": \xff}"), Contains("not JSON"));
  CHECK_THAT(TfError("run/cluster.json"),
             Contains("TF_CONFIG: expected JSON, got \"run/cluster.json\". Remedy: set it to the "
                      "text itself"));
}

}  // namespace
}  // namespace lockstep
