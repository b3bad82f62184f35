// The references for users: what they show is valid, what can be written is in them.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/config/cluster_reader.h"
#include "common/config/job.h"
#include "common/config/task.h"
#include "common/config/text_proto.h"
#include "common/model/graph.h"
#include "proto/cluster.pb.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;

std::string ReadDocument(const std::string& name) {
  std::ifstream file("docs/" + name);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fenced blocks whose first line ends with this word: "```textproto model".
std::vector<std::string> Blocks(const std::string& document, const std::string& kind) {
  std::vector<std::string> blocks;
  std::istringstream lines(ReadDocument(document));
  bool inside = false;
  bool wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      wanted = inside && absl::EndsWith(line, " " + kind);
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      absl::StrAppend(&blocks.back(), line, "\n");
    }
  }
  return blocks;
}

TEST_CASE("The models in the documentation build") {
  auto blocks = Blocks("model.md", "model");
  CHECK(blocks.size() == 10);
  blocks.push_back(Blocks("job.md", "model").at(0));
  for (const std::string& text : blocks) {
    ModelDef def;
    const absl::Status parsed = ParseTextProto("model.md", text, &def);
    INFO(text << parsed.ToString());
    REQUIRE(parsed.ok());
    const absl::Status built = ModelGraph::Build(def).status();
    INFO(built.ToString());
    CHECK(built.ok());
  }
}

TEST_CASE("The jobs in the documentation load") {
  const auto blocks = Blocks("job.md", "job");
  CHECK(blocks.size() == 4);
  test::TemporaryFolder folder;
  folder.Write("model.textproto", Blocks("model.md", "model")[0]);
  for (const std::string& text : blocks) {
    auto loaded = LoadJob(folder.Write("job.textproto", text));
    INFO(text << loaded.status().ToString());
    REQUIRE(loaded.ok());
    CHECK(ValidateJob(&loaded->job, 3).ok());
  }
}

TEST_CASE("The cluster specs in the documentation are valid") {
  const auto blocks = Blocks("cluster.md", "cluster");
  CHECK(blocks.size() == 3);
  test::TemporaryFolder folder;
  for (const std::string& text : blocks) {
    const auto spec = ReadClusterFile(folder.Write("cluster", text));
    INFO(text << spec.status().ToString());
    CHECK(spec.ok());
  }
  CHECK(ReadTfConfig(blocks[2])->task->index == 1);
}

// Whether the document shows this message: a whole line, or one that breaks off with "...".
bool Shows(const std::string& document, absl::string_view message) {
  std::istringstream lines(ReadDocument(document));
  for (std::string line; std::getline(lines, line);) {
    if (line == message) return true;
    absl::string_view beginning = line;
    if (absl::ConsumeSuffix(&beginning, "...") && !beginning.empty() &&
        absl::StartsWith(message, beginning)) {
      return true;
    }
  }
  return false;
}

std::string With(const std::string& text, const std::string& from, const std::string& to) {
  REQUIRE(absl::StrContains(text, from));
  return absl::StrReplaceAll(text, {{from, to}});
}

std::string ModelError(const std::string& text) {
  ModelDef def;
  absl::Status status = ParseTextProto("model.textproto", text, &def);
  if (status.ok()) status = ModelGraph::Build(def).status();
  return std::string(status.message());
}

TEST_CASE("The errors that the model reference shows are those that come") {
  const auto models = Blocks("model.md", "model");
  const std::string& chain = models[0];
  const std::string& residual = models[1];
  const std::string& table = models[3];
  for (const std::string& text :
       {With(chain, "units: 10", "unit: 10"),
        With(chain, "layers { name: \"flat\" flatten {} }\n", ""),
        With(residual, "name: \"conv2\" conv2d {", "name: \"conv2\" conv2d { strides: 2"),
        With(chain, "name: \"scores\" dense", "name: \"scores\" inputs: \"flt\" dense"),
        With(residual, "name: \"relu1\" relu", "name: \"relu1\" inputs: \"conv1\" relu"),
        With(chain, "name: \"relu\" relu", "name: \"relu\" frozen: true relu"),
        With(table, "columns { first: 0 count: 2 }", "relu {}")}) {
    const std::string error = ModelError(text);
    INFO(error);
    CHECK(Shows("model.md", error));
  }
}

std::string JobError(const std::string& text, bool with_model) {
  test::TemporaryFolder folder;
  if (with_model) folder.Write("model.textproto", Blocks("model.md", "model")[0]);
  const std::string path = folder.Write("job.textproto", text);
  auto loaded = LoadJob(path);
  std::string message(loaded.status().message());
  if (loaded.ok()) {
    message = absl::StrCat("job.textproto: ", ValidateJob(&loaded->job, 3).message());
  }
  return absl::StrReplaceAll(
      message, {{folder.path() + "/model", "/data/jobs/model"}, {folder.path() + "/", ""}});
}

TEST_CASE("The errors that the job reference shows are those that come") {
  const std::string job = Blocks("job.md", "job")[0];
  for (const std::string& error :
       {JobError(With(job, "max_steps", "max_step"), true),
        JobError(With(job, "base: 0.002", ""), true),
        JobError(With(job, "replicas_to_aggregate: 2", "replicas_to_aggregate: 4"), true),
        JobError(With(job, "global_batch: 96", "global_batch: 64"), true), JobError(job, false)}) {
    INFO(error);
    CHECK(Shows("job.md", error));
  }
}

TEST_CASE("The errors that the cluster reference shows are those that come") {
  const std::string json = Blocks("cluster.md", "cluster")[0];
  test::TemporaryFolder folder;
  const auto error_of = [&](const std::string& text, int64_t worker) {
    const std::string path = folder.Write("cluster.json", text);
    return absl::StrReplaceAll(
        LoadTask(Role::kWorker, path, worker, std::nullopt).status().message(),
        {{folder.path() + "/", ""}});
  };
  const std::string chief = "\"chief\": [\"node1:2221\"]";
  for (const std::string& error :
       {error_of(With(json, "\"node1:2223\",", "\"node1:2223\""), 0),
        error_of(With(json, "worker", "wroker"), 0),
        error_of(With(json, "node2:2223", "node1:2222"), 0),
        error_of(With(json, "node3:2223", "node3"), 0), error_of(json, 7),
        std::string(
            ReadTfConfig(absl::StrCat("{\"cluster\": ", With(json, chief, "\"chief\": []"), "}"))
                .status()
                .message())}) {
    INFO(error);
    CHECK(Shows("cluster.md", error));
  }
}

// Names of the fields and enumeration values that a text of this type may hold, at any depth.
void CollectNames(const Descriptor* type, std::set<const Descriptor*>* seen,
                  std::set<std::string>* names) {
  if (!seen->insert(type).second) return;
  for (int i = 0; i < type->field_count(); ++i) {
    names->insert(type->field(i)->name());
    const EnumDescriptor* const values = type->field(i)->enum_type();
    // A field takes some of the element types, not all.
    if (values != nullptr && values != DataType_descriptor()) {
      for (int j = 0; j < values->value_count(); ++j) names->insert(values->value(j)->name());
    }
    if (const Descriptor* inner = type->field(i)->message_type()) {
      CollectNames(inner, seen, names);
    }
  }
}

TEST_CASE("Every field that can be written is in the reference") {
  for (const auto& [type, document] : {std::pair{ModelDef::descriptor(), "model.md"},
                                       {JobDef::descriptor(), "job.md"},
                                       {ClusterDef::descriptor(), "cluster.md"}}) {
    std::set<const Descriptor*> seen;
    std::set<std::string> names;
    CollectNames(type, &seen, &names);
    const std::string text = ReadDocument(document);
    for (const std::string& name : names) {
      CAPTURE(document, name);
      CHECK(absl::StrContains(text, name));
    }
  }
}

}  // namespace
}  // namespace lockstep
