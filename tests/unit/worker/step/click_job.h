// A small job with a table, or another one, and replicas of it that train over parameter servers in
// this process.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "chief/plan/place.h"
#include "common/base/philox.h"
#include "common/config/text_proto.h"
#include "common/job/example_spec.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/thread_timer.h"
#include "tests/unit/worker/support/counting_ps.h"
#include "tests/unit/worker/support/fetched_variables.h"
#include "tests/unit/worker/support/ps_cluster.h"
#include "worker/data/prefetch_to_device/device_prefetcher.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/evaluate/evaluate_range.h"
#include "worker/local_sync/local_sync_pipeline.h"
#include "worker/ops/cpu/ops.h"
#include "worker/step/step_runner.h"
#include "worker/strategy/parameter_server/asynchronous_strategy.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"

namespace lockstep::worker::test {

inline constexpr char kClickModel[] = R"(
  input_shape: [3]
  layers { name: "ids" inputs: "input" columns { first: 0 count: 2 } }
  layers { name: "table" inputs: "ids" embedding { rows: 40 dim: 4 combiner: SUM } }
  layers { name: "number" inputs: "input" columns { first: 2 count: 1 } }
  layers { name: "both" inputs: ["table", "number"] concatenate {} }
  layers { name: "hidden" dense { units: 6 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 2 } }
  layers { name: "loss" softmax_cross_entropy {} })";

template <typename Message>
Message ParseOrDie(const std::string& text) {
  Message message;
  if (!ParseTextProto("test", text, &message).ok()) std::abort();
  return message;
}

struct ClickJobOptions {
  std::string model = kClickModel;
  std::optional<DataDef> data = std::nullopt;  // in place of the clicks
  std::string optimizer = "adam {} learning_rate { base: 0.05 }";
  uint32_t ps = 1;
  uint32_t workers = 1;
  int64_t towers = 1;
  int64_t batch = 8;  // per tower
  int64_t max_part_bytes = int64_t{1} << 30;
  std::string restore_from;
  int64_t start = 0;  // steps [start, end)
  int64_t end = 10;
  // In place of the batch; with the largest one that it gives.
  std::optional<LoadScheduleOptions> loads = std::nullopt;
  bool asynchronous = false;
  bool fetch_ahead = false;
  DType wire_type = DType::kFloat32;
  std::optional<int64_t> max_staleness;
  bool timeline = false;
  absl::Duration patience = absl::Seconds(120);
};

// Notes for which steps it was asked.
class NotingPipeline final : public Pipeline {
 public:
  NotingPipeline(std::unique_ptr<Pipeline> pipeline, std::vector<int64_t>* asked)
      : pipeline_(std::move(pipeline)), asked_(asked) {}
  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    asked_->push_back(step.value());
    return pipeline_->BatchesFor(step);
  }
  bool IsReady(GlobalStep step) const override { return pipeline_->IsReady(step); }
  int64_t num_examples() const override { return pipeline_->num_examples(); }
  int64_t last_step() const override { return pipeline_->last_step(); }

 private:
  const std::unique_ptr<Pipeline> pipeline_;
  std::vector<int64_t>* const asked_;
};

class ClickJob {
 public:
  static constexpr uint64_t kSeed = 3;      // of first values and dropout
  static constexpr uint64_t kDataSeed = 5;  // of the order of examples

  explicit ClickJob(const ClickJobOptions& options)
      : options_(options),
        graph_(*ModelGraph::Build(ParseOrDie<ModelDef>(options.model))),
        placement_(*chief::Place(graph_, options.ps, options.max_part_bytes, {})),
        layout_(*VariableLayout::Create(placement_)),
        cluster_({.placement = placement_,
                  .optimizer = ParseOrDie<OptimizerDef>(options.optimizer),
                  .seed = kSeed,
                  .workers = options.workers,
                  .asynchronous = options.asynchronous,
                  .max_staleness = options.max_staleness,
                  .restore_from = options.restore_from,
                  .start = options.start,
                  .end = options.end}),
        shards_(cluster_.data()),
        progress_(options.workers),
        batches_(options.workers) {
    std::string csv;
    for (int i = 0; i < 64; ++i) {
      const int user = (7 * i) % 40, item = (11 * i + 3) % 40;
      absl::StrAppend(&csv, user, ",", item, ",", i % 5, ".5,", (user + item) % 2, "\n");
    }
    folder_.Write("train.csv", csv);
    if (!options.asynchronous) cluster_.RunSteps();
  }

  // Trains every replica to the end. The status of each.
  std::vector<absl::Status> Train() {
    std::vector<absl::Status> ends(options_.workers);
    std::vector<std::thread> threads;
    for (uint32_t worker = 0; worker < options_.workers; ++worker) {
      threads.emplace_back([this, worker, &ends] { ends[worker] = TrainReplica(worker); });
    }
    for (std::thread& thread : threads) thread.join();
    return ends;
  }

  std::string Save() { return cluster_.Save(folder_.Path("checkpoints")); }

  // Of a variable at the end.
  std::vector<float> Values(const std::string& name) {
    test::FetchedVariables cache(layout_, cluster_.transports(), cluster_.Identity(0),
                                 options_.asynchronous);
    std::vector<std::vector<int64_t>> rows(layout_.variables().size());
    std::vector<std::span<const int64_t>> named;
    for (size_t i = 0; i < rows.size(); ++i) {
      const WholeVariable& variable = layout_.variables()[i];
      for (int64_t row = 0; variable.sparse && row < variable.shape.dim(0); ++row) {
        rows[i].push_back(row);
      }
      named.push_back(rows[i]);
    }
    if (!cache.Fetch(GlobalStep(options_.end), named).ok()) std::abort();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (layout_.variables()[i].name != name) continue;
      const std::span<const float> values = cache->views()[i].as<float>();
      return {values.begin(), values.end()};
    }
    std::abort();
  }

  // Of the variables at the end over all clicks, computed on the CPU.
  double MeanLoss() {
    std::vector<std::vector<float>> values;
    std::vector<TensorView> views;
    for (const ModelVariable& variable : graph_.variables()) {
      values.push_back(Values(variable.name));
      views.push_back({DType::kFloat32, variable.shape, values.back().data()});
    }
    DataDef data = Data();
    data.mutable_csv()->set_test(folder_.Path("train.csv"));
    const auto clicks = *TestSet::Open(data, Spec());
    const int64_t count = clicks->num_examples();
    CpuDevice device(1);
    const auto tower =
        *Tower::Create(graph_, &device, cpu::Ops(), {.batches = {count}, .training = false});
    return EvaluateRange(tower.get(), *clicks, VariableValues{views}, 0, count, count)->loss_sum /
           static_cast<double>(count);
  }

  // Of each step.
  std::vector<float> losses() { return cluster_.losses(); }
  PsCluster& cluster() { return cluster_; }
  CountingPs& shards() { return shards_; }
  const ModelGraph& graph() const { return graph_; }
  const VariableLayout& layout() const { return layout_; }
  ProgressReport report(uint32_t worker) const { return progress_[worker].Report(); }
  // The steps whose data a worker has used.
  const std::vector<int64_t>& batches(uint32_t worker) const { return batches_[worker]; }
  // What its timeline has to say.
  std::string timeline(uint32_t worker) const { return folder_.Read(TimelineName(worker)); }
  // Ends the training of all.
  void Stop() {
    absl::MutexLock lock(&mutex_);
    for (UpdateStrategy* strategy : strategies_) strategy->Cancel();
  }

 private:
  static std::string TimelineName(uint32_t worker) { return absl::StrCat(worker, ".csv"); }

  ExampleSpec Spec() const {
    return {graph_.input_shape(), graph_.is_classifier(), graph_.num_outputs()};
  }

  DataDef Data() const {
    if (options_.data.has_value()) return *options_.data;
    DataDef clicks;
    clicks.set_scale(1);
    clicks.mutable_csv()->add_train(folder_.Path("train.csv"));
    clicks.mutable_csv()->set_label_column("3");
    clicks.mutable_csv()->set_no_header(true);
    return clicks;
  }

  absl::Status TrainReplica(uint32_t worker) {
    const std::shared_ptr<Device> device = lockstep::test::MakeTestDevice(1);
    auto opened = OpenData(Data(), worker, device.get());
    if (!opened.ok()) return opened.status();
    NotingPipeline pipeline(*std::move(opened), &batches_[worker]);
    const auto towers = TowerGroup::Create(
        graph_, device.get(), lockstep::test::OpsOfTestDevice(),
        {.batch_per_tower = options_.batch,
         .reducer = {.towers = static_cast<int>(options_.towers),
                     .clipping = ParseOrDie<OptimizerDef>(options_.optimizer).clipping()}});
    if (!towers.ok()) return towers.status();
    BatchRows rows(graph_);
    std::unique_ptr<Timeline> timeline;
    if (options_.timeline) {
      timeline = *Timeline::Create(folder_.Path(TimelineName(worker)), Clock::Real());
    }
    const std::unique_ptr<UpdateStrategy> strategy =
        MakeStrategy(worker, rows.MostRows(options_.batch * options_.towers));
    {
      absl::MutexLock lock(&mutex_);
      strategies_.push_back(strategy.get());
    }
    StepRunnerOptions training;
    training.first_step =
        GlobalStep(options_.asynchronous ? options_.start / options_.workers : options_.start);
    training.random_seed = MixSeeds(kSeed, worker);
    training.timeline = timeline.get();
    absl::Status end = StepRunner(training, layout_, strategy.get(), {towers->get()}, &pipeline,
                                  &rows, &progress_[worker])
                           .Run();
    if (timeline != nullptr) end.Update(timeline->Flush());
    absl::MutexLock lock(&mutex_);
    std::erase(strategies_, strategy.get());
    return end;
  }

  absl::StatusOr<std::unique_ptr<Pipeline>> OpenData(const DataDef& data, uint32_t worker,
                                                     Device* device) const {
    if (options_.loads.has_value()) {
      return LocalSyncPipeline::Open(
          data, Spec(), {.seed = kDataSeed, .replica = worker, .loads = *options_.loads}, device);
    }
    auto host = Pipeline::Open(data, Spec(),
                               {.seed = kDataSeed,
                                .replica = worker,
                                .num_replicas = options_.workers,
                                .batch_per_tower = options_.batch,
                                .towers = options_.towers});
    if (!host.ok() || device->is_host()) return host;
    return DevicePrefetcher::Create(*std::move(host), device);
  }

  std::unique_ptr<UpdateStrategy> MakeStrategy(uint32_t worker,
                                               const std::vector<int64_t>& most_rows) {
    ShardGroupOptions shards;
    shards.session.identity = cluster_.Identity(worker);
    shards.session.asynchronous = options_.asynchronous;
    shards.session.wire_dtype = options_.wire_type;
    shards.token_per_replica = options_.fetch_ahead;
    shards.session.patience = options_.patience;
    shards.shard_names.assign(options_.ps, "ps");
    const ShardGroupResources resources{.shards = shards_.pointers(), .timer = &timer_};
    if (options_.asynchronous) {
      return *AsynchronousStrategy::Create(shards, layout_, resources, most_rows, nullptr);
    }
    return *ParameterServerStrategy::Create(
        {.shards = shards, .first_step = GlobalStep(options_.start)}, layout_, resources, most_rows,
        nullptr);
  }

  const ClickJobOptions options_;
  const ModelGraph graph_;
  const Placement placement_;
  const VariableLayout layout_;
  PsCluster cluster_;
  CountingPs shards_;
  lockstep::test::TemporaryFolder folder_;
  ThreadTimer timer_;
  std::vector<Progress> progress_;
  std::vector<std::vector<int64_t>> batches_;
  absl::Mutex mutex_;
  std::vector<UpdateStrategy*> strategies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker::test
