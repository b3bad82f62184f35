#include "tests/integration/training_run.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "deploy/cli/ports.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

ClusterSpec FreeCluster(const TrainingOptions& options) {
  auto addresses = deploy::FreeLoopbackAddresses(1 + options.ps + options.workers);
  REQUIRE(addresses.ok());
  const auto first_worker = addresses->begin() + 1 + options.ps;
  ClusterSpec cluster;
  cluster.chief = addresses->front();
  cluster.ps.assign(addresses->begin() + 1, first_worker);
  cluster.workers.assign(first_worker, addresses->end());
  return cluster;
}

}  // namespace

std::string DigitsData(const std::string& more) {
  const std::string digits = Binary("deploy/data/digits/");
  return absl::StrCat(
      "data { idx { train_images: '", digits, "train-images.idx.gz' train_labels: '", digits,
      "train-labels.idx.gz' test_images: '", digits, "test-images.idx.gz' test_labels: '", digits,
      "test-labels.idx.gz' } scale: 0.0625 ", more, "}\n");
}

TrainingRun::TrainingRun(const TrainingOptions& options) : cluster_(FreeCluster(options)) {
  folder_.Write("model.textproto", options.model);
  const deploy::LocalPlan plan = {
      .bin_dir = Binary("."),
      .run_dir = folder_.path(),
      .cluster_path = folder_.Write("cluster.json", deploy::ClusterJsonText(cluster_)),
      .job_path = folder_.Write("job.textproto", "model: 'model.textproto'\n" + options.job),
      .summary_path = folder_.Path("summary.json"),
      .restore = options.restore,
      .cores = options.workers};
  tasks_ = deploy::PlanTasks(cluster_, plan);
  for (const deploy::Task& task : tasks_) {
    processes_.push_back(
        std::make_unique<Process>(task.command.arguments, task.command.environment));
  }
}

nlohmann::json TrainingRun::Finish() {
  const absl::Time deadline = absl::Now() + kPatience;
  bool all_well = true;
  for (const auto& process : processes_) {
    all_well &= process->Wait(std::max(absl::ZeroDuration(), deadline - absl::Now())) == 0;
  }
  if (!all_well) FAIL(Outputs());
  auto summary = nlohmann::json::parse(folder_.Read("summary.json"), nullptr, false);
  REQUIRE(summary.is_object());
  return summary;
}

std::string TrainingRun::Outputs() const {
  std::string text;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::optional<int> code = processes_[i]->Wait(absl::ZeroDuration());
    absl::StrAppend(&text, deploy::TaskName(tasks_[i].role, tasks_[i].index),
                    code ? absl::StrCat(" exited with ", *code) : " still runs", "\n",
                    processes_[i]->Output(), "\n");
  }
  return text;
}

std::vector<double> Losses(const nlohmann::json& summary) {
  REQUIRE(summary.contains("losses"));
  return summary["losses"].get<std::vector<double>>();
}

std::vector<double> LossesOf(const TrainingOptions& options) {
  return Losses(TrainingRun(options).Finish());
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
