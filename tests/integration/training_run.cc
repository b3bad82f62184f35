#include "tests/integration/training_run.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

}  // namespace

nlohmann::json Finish(Cluster& cluster) {
  const absl::Time deadline = absl::Now() + kPatience;
  const auto ends_well = [&](Process& process) {
    return process.Wait(std::max(absl::ZeroDuration(), deadline - absl::Now())) == 0;
  };
  // After the first that does not, nobody waits for the others, which may wait for that one.
  bool all_well = ends_well(cluster.chief());
  for (size_t i = 0; all_well && i < cluster.spec().ps.size(); ++i) {
    all_well = ends_well(cluster.ps(static_cast<int>(i)));
  }
  for (size_t i = 0; all_well && i < cluster.spec().workers.size(); ++i) {
    all_well = ends_well(cluster.worker(static_cast<int>(i)));
  }
  if (!all_well) FAIL(cluster.Logs());
  auto summary = nlohmann::json::parse(cluster.Summary(), nullptr, false);
  REQUIRE(summary.is_object());
  return summary;
}

std::vector<double> Losses(const nlohmann::json& summary) {
  REQUIRE(summary.contains("losses"));
  return summary["losses"].get<std::vector<double>>();
}

std::vector<double> LossesOf(int ps, int workers, const JobText& job,
                             const std::vector<std::string>& chief_flags) {
  Cluster cluster(ps, workers);
  cluster.StartAll(job, chief_flags);
  return Losses(Finish(cluster));
}

std::map<std::string, std::string> TensorsOf(const std::string& checkpoint) {
  std::ifstream file(checkpoint + "/manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(file);
  std::map<std::string, std::string> tensors;
  for (const nlohmann::json& shard : manifest.at("shards")) {
    for (const nlohmann::json& tensor : shard.at("tensors")) {
      tensors[tensor.at("name")] = tensor.at("crc32c").dump();
    }
  }
  return tensors;
}

nlohmann::json EvaluateAlone(const std::string& checkpoint) {
  const TemporaryFolder folder;
  const Ended ended = RunToEnd({Binary("worker/predict"), "evaluate", "--threads=1",
                                "--checkpoint=" + checkpoint, "--json=" + folder.Path("json")},
                               absl::Minutes(1));
  CAPTURE(ended.output);
  REQUIRE(ended.exit_code == 0);
  return nlohmann::json::parse(folder.Read("json"), nullptr, false);
}

double LargestRelativeDifference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  }
  return largest;
}

}  // namespace lockstep::test
