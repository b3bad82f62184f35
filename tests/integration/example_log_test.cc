// Counts the examples that the towers of real workers take: none goes to two towers in a step, and
// none is lost but by the rules of auto_shard, data.transform and local_sync.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr int kWorkers = 2;
constexpr int kTowers = 2;
constexpr int kBatch = 4;  // per tower
constexpr int kSteps = 20;
constexpr char kModel[] = R"(
  input_shape: 2
  layers { name: "scores" dense { units: 3 } }
  layers { name: "loss" softmax_cross_entropy {} })";

using Numbers = std::vector<int64_t>;

std::string CsvOf(int examples) {
  std::string csv = "a,b,y\n";
  for (int i = 0; i < examples; ++i) absl::StrAppend(&csv, i % 7, ",", i % 5, ",", i % 3, "\n");
  return csv;
}

// By step, then tower.
using Log = std::map<int64_t, std::map<int64_t, Numbers>>;

Log Parse(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  REQUIRE(!lines.empty());
  CHECK(lines[0] == "step,tower,examples");
  Log log;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i], ',');
    REQUIRE(fields.size() == 3);
    int64_t step = -1, tower = -1;
    REQUIRE(absl::SimpleAtoi(fields[0], &step));
    REQUIRE(absl::SimpleAtoi(fields[1], &tower));
    Numbers& numbers = log[step][tower];
    CHECK(numbers.empty());
    for (const absl::string_view number : absl::StrSplit(fields[2], ' ')) {
      REQUIRE(absl::SimpleAtoi(number, &numbers.emplace_back()));
    }
  }
  return log;
}

// What each worker logged in a job that ended well.
std::vector<Log> LogsOf(const std::string& data, const std::string& more = "") {
  Cluster cluster(1, kWorkers);
  cluster.LogExamples();
  const bool loads = more.find("local_sync") != std::string::npos;
  cluster.StartAll({.global_batch = loads ? 0 : kWorkers * kTowers * kBatch,
                    .max_steps = kSteps,
                    .optimizer = "sgd {} learning_rate { base: 0.01 }",
                    .data = data,
                    .model = kModel,
                    .more = absl::StrCat("towers: ", kTowers, " ", more)});
  Finish(cluster);
  std::vector<Log> logs;
  for (int worker = 0; worker < kWorkers; ++worker) {
    const Log log = Parse(cluster.ExampleLog(worker));
    CHECK(log.size() == kSteps);
    for (const auto& [step, towers] : log) {
      CHECK(towers.size() == kTowers);
      for (const auto& [tower, numbers] : towers) CHECK(numbers.size() == kBatch);
    }
    logs.push_back(log);
  }
  return logs;
}

// The examples of one worker in the order of steps and towers.
Numbers StreamOf(const Log& log) {
  Numbers stream;
  for (const auto& [step, towers] : log) {
    for (const auto& [tower, numbers] : towers) {
      stream.insert(stream.end(), numbers.begin(), numbers.end());
    }
  }
  return stream;
}

// Each `count` examples one after the other are all of 0 to count - 1, but for the last ones, of
// which none comes twice.
void CheckDataEpochs(const Numbers& stream, size_t count) {
  for (size_t begin = 0; begin < stream.size(); begin += count) {
    Numbers epoch(stream.begin() + begin, stream.begin() + std::min(begin + count, stream.size()));
    std::ranges::sort(epoch);
    CHECK(std::ranges::adjacent_find(epoch) == epoch.end());
    CHECK(epoch.front() >= 0);
    CHECK(epoch.back() < static_cast<int64_t>(count));
  }
}

TEST_CASE("by record, a data epoch gives each example to one tower of one worker") {
  const TemporaryFolder folder;
  const std::vector<Log> logs = LogsOf(
      absl::StrCat("csv { train: '", folder.Write("a.csv", CsvOf(50)), "' label_column: 'y' }"));
  Numbers stream;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (const Log& log : logs) {
      for (const auto& [tower, numbers] : log.at(step)) {
        stream.insert(stream.end(), numbers.begin(), numbers.end());
      }
    }
  }
  REQUIRE(stream.size() == kSteps * kWorkers * kTowers * kBatch);
  CheckDataEpochs(stream, 50);
}

TEST_CASE("by file, each worker takes each example of its files once in a data epoch") {
  const TemporaryFolder folder;
  std::string files;
  for (const int examples : {10, 20, 30, 15}) {
    const std::string file = folder.Write(absl::StrCat(examples, ".csv"), CsvOf(examples));
    absl::StrAppend(&files, "train: '", file, "' ");
  }
  const std::vector<Log> logs =
      LogsOf(absl::StrCat("csv { ", files, "label_column: 'y' } auto_shard: FILE"));
  CheckDataEpochs(StreamOf(logs[0]), 10 + 30);
  CheckDataEpochs(StreamOf(logs[1]), 20 + 15);
}

TEST_CASE("without shards each worker takes each example once in a data epoch of its own") {
  const TemporaryFolder folder;
  const std::vector<Log> logs = LogsOf(absl::StrCat(
      "csv { train: '", folder.Write("a.csv", CsvOf(50)), "' label_column: 'y' } auto_shard: OFF"));
  for (const Log& log : logs) CheckDataEpochs(StreamOf(log), 50);
  CHECK(StreamOf(logs[0]) != StreamOf(logs[1]));
}

TEST_CASE("transforms lose what drop_remainder drops, and nothing else") {
  const TemporaryFolder folder;
  // 25 and 24 examples: 6 batches of 4 in each pass.
  const std::vector<Log> logs =
      LogsOf(absl::StrCat("csv { train: '", folder.Write("a.csv", CsvOf(49)),
                          "' label_column: 'y' } transform { shuffle { buffer: 9 } } ",
                          "transform { batch { drop_remainder: true } } transform { repeat {} }"));
  for (int worker = 0; worker < kWorkers; ++worker) {
    const Numbers stream = StreamOf(logs[worker]);
    for (size_t begin = 0; begin + 24 <= stream.size(); begin += 24) {
      const std::set<int64_t> pass(stream.begin() + begin, stream.begin() + begin + 24);
      CHECK(pass.size() == 24);
      for (const int64_t number : pass) CHECK(number % kWorkers == worker);
    }
  }
}

TEST_CASE("each pass over a load gives each of its examples to the tower that has it") {
  const TemporaryFolder folder;
  // Of each load of 32 a worker has 16, a tower 8: two batches in each of 5 passes.
  const std::vector<Log> logs = LogsOf(
      absl::StrCat("csv { train: '", folder.Write("a.csv", CsvOf(64)), "' label_column: 'y' }"),
      "local_sync { max_per_device_batch_size: 4 load: 32 passes: 5 }");
  std::set<int64_t> data_epoch;
  for (int64_t load = 0; load < 2; ++load) {
    for (const Log& log : logs) {
      for (int64_t tower = 0; tower < kTowers; ++tower) {
        std::map<int64_t, int> times;
        for (int64_t step = 10 * load; step < 10 * load + 10; ++step) {
          for (const int64_t number : log.at(step).at(tower)) ++times[number];
        }
        CHECK(times.size() == 8);
        for (const auto& [number, count] : times) {
          CHECK(count == 5);
          CHECK(data_epoch.insert(number).second);
        }
      }
    }
  }
  CHECK(data_epoch.size() == 64);
}

TEST_CASE("towers that train by themselves share the examples of their worker") {
  const TemporaryFolder folder;
  Cluster cluster(1, 1);
  cluster.LogExamples();
  cluster.StartAll({.global_batch = kTowers * kBatch,
                    .max_steps = 40,
                    .optimizer = "sgd {} learning_rate { base: 0.01 }",
                    .sync = "asynchronous {}",
                    .data = absl::StrCat("csv { train: '", folder.Write("a.csv", CsvOf(40)),
                                         "' label_column: 'y' }"),
                    .model = kModel,
                    .more = "towers: 2"});
  Finish(cluster);
  // One tower may be ahead of the other: what both have taken, they have divided.
  std::map<int64_t, int> times;
  size_t steps = 0;
  for (const auto& [step, towers] : Parse(cluster.ExampleLog(0))) {
    if (towers.size() < kTowers || step >= 5) break;
    ++steps;
    for (const auto& [tower, numbers] : towers) {
      for (const int64_t number : numbers) ++times[number];
    }
  }
  CHECK(times.size() == steps * kTowers * kBatch);
  for (const auto& [number, count] : times) CHECK(count == 1);
}

}  // namespace
}  // namespace lockstep::test
