// The references for users: what they show is valid, what can be written is in them.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/config/cluster_reader.h"
#include "common/config/job.h"
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
  const auto blocks = Blocks("model.md", "model");
  CHECK(blocks.size() == 3);
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
  CHECK(blocks.size() == 2);
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

// Names of the fields and enumeration values that a text of this type may hold, at any depth.
void CollectNames(const Descriptor* type, std::set<const Descriptor*>* seen,
                  std::set<std::string>* names) {
  if (!seen->insert(type).second) return;
  for (int i = 0; i < type->field_count(); ++i) {
    names->insert(type->field(i)->name());
    if (const EnumDescriptor* values = type->field(i)->enum_type()) {
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
