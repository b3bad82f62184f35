#include "worker/data/pipeline.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
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
            [this](int64_t step, std::vector<Batch>* out) { batches_.Fill(step, out); }) {}

  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    if (step.value() < 0 || step.value() > last_step()) {
      return absl::InvalidArgumentError(
          absl::StrCat("step: expected 0 to ", last_step(), ", got ", step.value()));
    }
    return prefetcher_.Get(step.value());
  }

  bool IsReady(GlobalStep step) const override { return prefetcher_.Has(step.value()); }

  int64_t num_examples() const override { return batches_.num_examples(); }
  int64_t last_step() const override { return batches_.last_step(); }

 private:
  ReplicaBatches batches_;  // filled from by the prefetcher's thread alone
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

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Open(const DataDef& data,
                                                         const ExampleSpec& spec,
                                                         const PipelineOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto store, ReplicaBatches::OpenStore(data, spec, options));
  return MakePipeline(std::move(store), data, options, {0, options.towers});
}

absl::StatusOr<std::vector<std::unique_ptr<Pipeline>>> Pipeline::OpenPerTower(
    const DataDef& data, const ExampleSpec& spec, const PipelineOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto store, ReplicaBatches::OpenStore(data, spec, options));
  std::vector<std::unique_ptr<Pipeline>> pipelines(options.towers);
  for (int64_t tower = 0; tower < options.towers; ++tower) {
    LOCKSTEP_ASSIGN_OR_RETURN(pipelines[tower], MakePipeline(store, data, options, {tower, 1}));
  }
  return pipelines;
}

}  // namespace lockstep::worker
