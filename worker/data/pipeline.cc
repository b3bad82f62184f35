#include "worker/data/pipeline.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/data/batch_memory.h"
#include "worker/data/prefetcher.h"
#include "worker/data/replica_batches.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kDefaultPrefetch = 2;
constexpr int64_t kMostPrefetch = 1024;

// Batches per tower that are prepared ahead; 0: not given.
int64_t PrefetchOf(const DataDef& data) {
  for (const DataTransform& transform : data.transform()) {
    if (transform.has_prefetch()) return transform.prefetch().batches();
  }
  return data.prefetch();
}

class PrefetchedPipeline final : public Pipeline {
 public:
  PrefetchedPipeline(ReplicaBatches batches, int64_t ahead)
      : batches_(std::move(batches)),
        prefetcher_(
            ahead, batches_.last_step(), [this] { return batches_.MakeBatches(); },
            [this](int64_t step, std::vector<Batch>* out) {
              batches_.Fill(step, cancelled_, out);
            }) {}
  ~PrefetchedPipeline() override { Cancel(); }

  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    if (step.value() < 0 || step.value() > last_step()) {
      return absl::InvalidArgumentError(
          absl::StrCat("step: expected 0 to ", last_step(), ", got ", step.value()));
    }
    const std::vector<Batch>* const batches = prefetcher_.Get(step.value());
    if (batches == nullptr)
      return absl::CancelledError("the training data are not needed any more");
    return batches;
  }

  void Cancel() override {
    // First: a step that is given up must not be handed out.
    prefetcher_.Stop();
    cancelled_.store(true, std::memory_order_relaxed);
  }

  bool IsReady(GlobalStep step) const override { return prefetcher_.Has(step.value()); }

  std::vector<size_t> AlignedBytes() const override {
    return std::vector<size_t>(static_cast<size_t>(batches_.num_towers()),
                               batches_.aligned_bytes());
  }

  int64_t num_examples() const override { return batches_.num_examples(); }
  int64_t last_step() const override { return batches_.last_step(); }

 private:
  ReplicaBatches batches_;  // filled from by the prefetcher's thread alone
  std::atomic<bool> cancelled_ = false;
  Prefetcher prefetcher_;
};

absl::StatusOr<int64_t> BatchesAhead(const DataDef& data) {
  const int64_t prefetch = PrefetchOf(data);
  if (prefetch < 0 || prefetch > kMostPrefetch) {
    return absl::InvalidArgumentError(absl::StrCat("data.prefetch: expected 0 to ", kMostPrefetch,
                                                   " batches, got ", prefetch,
                                                   ". Remedy: leave it out."));
  }
  return prefetch == 0 ? kDefaultPrefetch : prefetch;
}

absl::StatusOr<std::unique_ptr<Pipeline>> MakePipeline(std::shared_ptr<const ExampleStore> store,
                                                       const DataDef& data,
                                                       const PipelineOptions& options,
                                                       TowerRange towers) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t ahead, BatchesAhead(data));
  LOCKSTEP_ASSIGN_OR_RETURN(auto batches,
                            ReplicaBatches::Create(std::move(store), data, options, towers));
  return std::make_unique<PrefetchedPipeline>(std::move(batches), ahead);
}

// Of so many pipelines at a time.
absl::Status CheckMemory(const ExampleStore& store, const DataDef& data,
                         const PipelineOptions& options, int64_t pipelines,
                         BatchFields fields = {}) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t ahead, BatchesAhead(data));
  if (!data.transform().empty()) fields.remedy = "lower it or the prefetch of data.transform";
  // Transformed data keep what their shuffle buffers hold, and no permutation.
  const int64_t orders = data.transform().empty() ? pipelines : 0;
  return CheckBatchMemory(store, options, ahead, orders, fields);
}

// A pipeline of its own for each share that it gets.
class SharedPipeline final : public Pipeline {
 public:
  SharedPipeline(std::shared_ptr<const ExampleStore> store, const DataDef& data,
                 const PipelineOptions& options, int64_t global_batch)
      : store_(std::move(store)), data_(data), options_(options), global_batch_(global_batch) {}

  absl::Status UseShare(const ReplicaShare& share) override {
    LOCKSTEP_CHECK(share.takes_part());
    const int64_t batches = int64_t{share.total} * options_.towers;
    if (global_batch_ % batches != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "replica view ", share.view, ": expected a number of replicas over which ", global_batch_,
          " examples divide with ", options_.towers, " towers each, got ", share.total));
    }
    PipelineOptions options = options_;
    options.replica = share.position;
    options.num_replicas = share.total;
    options.batch_per_tower = global_batch_ / batches;
    // Two shares at a time could take more memory than the check has allowed.
    pipeline_.reset();
    LOCKSTEP_ASSIGN_OR_RETURN(pipeline_, MakePipeline(store_, data_, options, {0, options.towers}));
    return absl::OkStatus();
  }

  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    if (pipeline_ == nullptr) return absl::FailedPreconditionError("the replica has no share yet");
    return pipeline_->BatchesFor(step);
  }

  bool IsReady(GlobalStep step) const override {
    return pipeline_ != nullptr && pipeline_->IsReady(step);
  }

  int64_t num_examples() const override { return store_->num_examples(); }
  int64_t last_step() const override { return pipeline_ == nullptr ? 0 : pipeline_->last_step(); }

 private:
  const std::shared_ptr<const ExampleStore> store_;
  const DataDef data_;
  const PipelineOptions options_;
  const int64_t global_batch_;
  std::unique_ptr<Pipeline> pipeline_;  // of the share; null: none yet
};

}  // namespace

absl::Status Pipeline::UseShare(const ReplicaShare& share) {
  return absl::FailedPreconditionError(
      absl::StrCat("replica view ", share.view, ": the data of this job have fixed shares"));
}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::OpenShared(const DataDef& data,
                                                               const ExampleSpec& spec,
                                                               const PipelineOptions& options,
                                                               int64_t global_batch) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto store, ReplicaBatches::OpenStore(data, spec, options));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckMemory(*store, data, options, /*pipelines=*/1,
                  {.batch = "global_batch",
                   .remedy = "lower it or data.prefetch, or raise sync.min_replicas"}));
  return std::make_unique<SharedPipeline>(std::move(store), data, options, global_batch);
}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Open(const DataDef& data,
                                                         const ExampleSpec& spec,
                                                         const PipelineOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto store, ReplicaBatches::OpenStore(data, spec, options));
  LOCKSTEP_RETURN_IF_ERROR(CheckMemory(*store, data, options, /*pipelines=*/1));
  return MakePipeline(std::move(store), data, options, {0, options.towers});
}

absl::StatusOr<std::vector<std::unique_ptr<Pipeline>>> Pipeline::OpenPerTower(
    const DataDef& data, const ExampleSpec& spec, const PipelineOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto store, ReplicaBatches::OpenStore(data, spec, options));
  LOCKSTEP_RETURN_IF_ERROR(CheckMemory(*store, data, options, options.towers));
  std::vector<std::unique_ptr<Pipeline>> pipelines(options.towers);
  for (int64_t tower = 0; tower < options.towers; ++tower) {
    LOCKSTEP_ASSIGN_OR_RETURN(pipelines[tower], MakePipeline(store, data, options, {tower, 1}));
  }
  return pipelines;
}

}  // namespace lockstep::worker
