#include "worker/data/pipeline.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/prefetcher.h"
#include "worker/data/replica_batches.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kDefaultPrefetch = 2;
constexpr int64_t kMostPrefetch = 1024;

class PrefetchedPipeline final : public Pipeline {
 public:
  PrefetchedPipeline(ReplicaBatches batches, int64_t ahead)
      : batches_(std::move(batches)),
        prefetcher_(
            ahead, batches_.last_step(), [this] { return batches_.MakeBatches(); },
            [this](int64_t step, std::vector<Batch>* out) { batches_.Fill(step, out); }) {}

  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    if (step.value() < 0 || step.value() > batches_.last_step()) {
      return absl::InvalidArgumentError(
          absl::StrCat("step: expected 0 to ", batches_.last_step(), ", got ", step.value()));
    }
    return prefetcher_.Get(step.value());
  }

  bool IsReady(GlobalStep step) const override { return prefetcher_.Has(step.value()); }

  int64_t num_examples() const override { return batches_.num_examples(); }

 private:
  ReplicaBatches batches_;  // filled from by the prefetcher's thread alone
  Prefetcher prefetcher_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Open(const DataDef& data,
                                                         const ExampleSpec& spec,
                                                         const PipelineOptions& options) {
  if (data.prefetch() < 0 || data.prefetch() > kMostPrefetch) {
    return absl::InvalidArgumentError(absl::StrCat("data.prefetch: expected 0 to ", kMostPrefetch,
                                                   " batches, got ", data.prefetch(),
                                                   ". Remedy: leave it out."));
  }
  const int64_t ahead = data.prefetch() == 0 ? kDefaultPrefetch : data.prefetch();
  LOCKSTEP_ASSIGN_OR_RETURN(auto batches, ReplicaBatches::Open(data, spec, options));
  return std::make_unique<PrefetchedPipeline>(std::move(batches), ahead);
}

}  // namespace lockstep::worker
