// Every example job loads, its model builds, and what it says about itself is so.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/config/cluster_reader.h"
#include "common/config/job.h"
#include "common/model/graph.h"
#include "common/model/index_columns.h"
#include "deploy/data/clicks/click_files.h"
#include "deploy/data/clicks/click_model.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr char kExamples[] = "deploy/examples";

std::set<std::string> JobNames() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kExamples)) {
    if (fs::exists(entry.path() / "job.textproto")) names.insert(entry.path().filename());
  }
  return names;
}

LoadedJob LoadExample(const std::string& name) {
  auto loaded = LoadJob((fs::path(kExamples) / name / "job.textproto").string());
  INFO(loaded.status().ToString());
  REQUIRE(loaded.ok());
  return *std::move(loaded);
}

ModelGraph BuildExample(const LoadedJob& loaded) {
  auto graph = ModelGraph::Build(loaded.model);
  INFO(graph.status().ToString());
  REQUIRE(graph.ok());
  return *std::move(graph);
}

int64_t TrainedNumbers(const ModelGraph& graph) {
  int64_t count = 0;
  for (const ModelVariable& variable : graph.variables()) {
    if (variable.trainable) count += variable.shape.num_elements();
  }
  return count;
}

TEST_CASE("Every example loads and fits the cluster that it asks for") {
  CHECK(JobNames() ==
        std::set<std::string>{"clicks", "digits", "fashion", "gan", "iris", "residual", "text"});
  for (const std::string& name : JobNames()) {
    CAPTURE(name);
    LoadedJob loaded = LoadExample(name);
    CHECK(loaded.job.name() == name);
    CHECK(BuildExample(loaded).is_classifier() == (name != "gan"));
    CHECK(loaded.job.local().ps() >= 1);
    CHECK(ValidateJob(&loaded.job, loaded.job.local().workers()).ok());
    CHECK_FALSE(loaded.job.checkpoint().folder().empty());
  }
}

TEST_CASE("The data files of the examples are where the jobs say") {
  for (const std::string& name : JobNames()) {
    if (name == "clicks") continue;  // generated
    const DataDef data = LoadExample(name).job.data();
    std::vector<std::string> paths = {data.idx().test_images(), data.idx().test_labels(),
                                      data.csv().test(), data.text().path()};
    for (const auto& train :
         {data.idx().train_images(), data.idx().train_labels(), data.csv().train()}) {
      paths.insert(paths.end(), train.begin(), train.end());
    }
    for (const std::string& path : paths) {
      CAPTURE(name, path);
      // Fashion-MNIST comes from a package of the system, which a build need not have.
      if (path.empty() || absl::StartsWith(path, "/usr/share/datasets/")) continue;
      CHECK(fs::exists(path));
    }
  }
}

TEST_CASE("The demo has a backup worker and can be split over one to three workers") {
  for (const char* name : {"clicks", "digits", "fashion"}) {
    JobDef job = LoadExample(name).job;
    CHECK(job.sync().replicas_to_aggregate() == 2);
    CHECK(job.local().workers() == 3);
    for (int64_t workers : {2, 3}) {
      JobDef split = job;
      CHECK(ValidateJob(&split, workers).ok());
    }
  }
}

// "# A small network: 206,922 trained numbers." begins the model file.
int64_t StatedNumbers(const LoadedJob& loaded) {
  std::ifstream file(loaded.job.model());
  std::string line;
  REQUIRE(std::getline(file, line));
  const size_t end = line.find(" trained numbers");
  REQUIRE(end != std::string::npos);
  const size_t begin = line.rfind(' ', end - 1) + 1;
  return std::stoll(absl::StrReplaceAll(line.substr(begin, end - begin), {{",", ""}}));
}

TEST_CASE("The sizes that the examples state are those of their models") {
  for (const char* name : {"clicks", "digits", "fashion", "text"}) {
    CAPTURE(name);
    const LoadedJob loaded = LoadExample(name);
    CHECK(TrainedNumbers(BuildExample(loaded)) == StatedNumbers(loaded));
  }
}

TEST_CASE("The tables of the click model have a row for each that its data name") {
  const std::vector<IndexColumns> tables = IndexColumnsOf(BuildExample(LoadExample("clicks")));
  REQUIRE(tables.size() == 2);
  for (const IndexColumns& table : tables) CHECK(table.rows == deploy::ClickModel::num_rows());
  CHECK(tables[0].columns.count == deploy::Click::kCategorical + 1);
  CHECK(tables[1].columns.count == deploy::Click::kCategorical);
}

TEST_CASE("The click example states how well its data can be predicted") {
  const test::TemporaryFolder folder;
  const auto figures = deploy::WriteClickFiles(folder.path(), {});
  REQUIRE(figures.ok());
  std::ifstream file("deploy/examples/clicks/README.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string readme = text.str();
  for (const std::string& row : {absl::StrFormat("\"no\" | %.4f |", figures->majority),
                                 absl::StrFormat("probabilities | %.4f | %.4f |",
                                                 figures->best_accuracy, figures->best_log_loss)}) {
    CAPTURE(row);
    CHECK(absl::StrContains(readme, row));
  }
}

TEST_CASE("The cluster spec means the same in both of its forms") {
  const auto json = ReadClusterFile(std::string(kExamples) + "/cluster.json");
  const auto text = ReadClusterFile(std::string(kExamples) + "/cluster.textproto");
  REQUIRE(json.ok());
  REQUIRE(text.ok());
  CHECK(json->Canonical() == text->Canonical());
}

}  // namespace
}  // namespace lockstep
