#include "worker/data/replica_batches.h"

#include <utility>

#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/dataset/transform_of_job.h"
#include "worker/data/data_options.h"
#include "worker/data/sliced_source.h"
#include "worker/data/transformed_source.h"

namespace lockstep::worker {
namespace {

// Without a common stream each replica has a whole one for itself, in an order of its own.
PipelineOptions StreamOptions(const DataDef& data, PipelineOptions options) {
  if (data.auto_shard() == DataDef::RECORD) return options;
  options.seed = MixSeeds(options.seed, options.replica);
  options.replica = 0;
  options.num_replicas = 1;
  return options;
}

absl::StatusOr<std::unique_ptr<ExampleSource>> MakeSource(const DataDef& data,
                                                          const PipelineOptions& options,
                                                          int64_t num_examples) {
  if (data.transform().empty()) {
    const PipelineOptions stream = StreamOptions(data, options);
    LOCKSTEP_ASSIGN_OR_RETURN(const Slice slice, Slice::Create(stream));
    LOCKSTEP_ASSIGN_OR_RETURN(const ShuffleWindow window, WindowOf(data, num_examples));
    return std::make_unique<SlicedSource>(slice, IndexStream(stream.seed, num_examples, window));
  }
  return TransformedSource::Create(
      TransformStepsOf(data, {options.replica, options.num_replicas}, options.batch_per_tower),
      num_examples, {.job = options.seed, .replica = MixSeeds(options.seed, options.replica)},
      options.towers);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ExampleStore>> ReplicaBatches::OpenStore(
    const DataDef& data, const ExampleSpec& spec, const PipelineOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      ExampleStore store,
      ExampleStore::Open(data, Split::kTrain, spec,
                         FileShardOf(data, {options.replica, options.num_replicas})));
  return std::make_shared<const ExampleStore>(std::move(store));
}

absl::StatusOr<ReplicaBatches> ReplicaBatches::Create(std::shared_ptr<const ExampleStore> store,
                                                      const DataDef& data,
                                                      const PipelineOptions& options,
                                                      TowerRange towers) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Slice slice, Slice::Create(options));
  const int64_t shift = data.augmentation().shift();
  LOCKSTEP_RETURN_IF_ERROR(CheckShift(shift, *store));
  LOCKSTEP_ASSIGN_OR_RETURN(auto source, MakeSource(data, options, store->num_examples()));
  const uint64_t seed = data.transform().empty() ? StreamOptions(data, options).seed
                                                 : MixSeeds(options.seed, options.replica);
  return ReplicaBatches(std::move(store), slice, towers, std::move(source),
                        ShiftSource(seed, shift), shift > 0, options.make_tensor);
}

ReplicaBatches::ReplicaBatches(std::shared_ptr<const ExampleStore> store, const Slice& slice,
                               TowerRange towers, std::unique_ptr<ExampleSource> source,
                               ShiftSource shifts, bool shifted, TensorMaker make_tensor)
    : store_(std::move(store)),
      batch_per_tower_(slice.batch_per_tower()),
      towers_(towers),
      source_(std::move(source)),
      shifts_(shifts),
      shifted_(shifted),
      make_tensor_(std::move(make_tensor)),
      examples_(slice.towers()) {}

std::vector<Batch> ReplicaBatches::MakeBatches() const {
  std::vector<Batch> batches;
  for (int64_t tower = 0; tower < towers_.count; ++tower) {
    batches.push_back(store_->MakeBatch(batch_per_tower_, make_tensor_));
    batches.back().examples.resize(batch_per_tower_);
  }
  return batches;
}

void ReplicaBatches::Fill(int64_t step, const std::atomic<bool>& cancelled,
                          std::vector<Batch>* batches) {
  if (!source_->Read(step, cancelled, &examples_)) return;
  for (int64_t tower = 0; tower < towers_.count; ++tower) {
    Batch* batch = &(*batches)[tower];
    for (int64_t row = 0; row < batch_per_tower_; ++row) {
      const DrawnExample& example = examples_[towers_.first + tower][row];
      batch->examples[row] = example.number;
      if (shifted_) {
        store_->CopyShiftedTo(example.number, shifts_.At(example.draw), row, batch);
      } else {
        store_->CopyTo(example.number, row, batch);
      }
    }
  }
}

}  // namespace lockstep::worker
