#include "worker/local_sync/local_sync_pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "worker/data/buffer_memory.h"
#include "worker/data/epoch_order.h"
#include "worker/device/pinned_tensor.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLoadsAhead = 1;

// Of the largest load of one worker.
int64_t ExamplesPerLoad(const LoadSchedule& schedule) { return schedule.plan(0).sequences_kept(); }

// The rows of examples [0, count), of which each has `rows` in its first dimension.
TensorView RowsOf(const Tensor& examples, int64_t count, int64_t rows) {
  TensorView view = RowRange(examples.view(), 0, count);
  if (rows == 1) return view;
  std::vector<int64_t> dims = {count * rows};
  const absl::Span<const int64_t> row = view.shape.dims().subspan(2);
  dims.insert(dims.end(), row.begin(), row.end());
  view.shape = Shape(dims);
  return view;
}

absl::Status CheckMemory(const LoadSchedule& schedule, const ExampleStream& stream,
                         int64_t workers) {
  if (stream.HasRoomFor(ExamplesPerLoad(schedule))) {
    return CheckRoomFor(NeedOf({.buffers = kLoadsAhead + 1,
                                .examples = ExamplesPerLoad(schedule),
                                .bytes_per_example = stream.bytes_per_example(),
                                .field = "local_sync.load",
                                .remedy = "lower it"}));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("local_sync.load: expected at most ", stream.MostRows(), " examples of shape ",
                   stream.input_shape().ToString(), " per worker, got ", ExamplesPerLoad(schedule),
                   " for each of ", workers, " workers. Remedy: lower it"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalSyncPipeline>> LocalSyncPipeline::Open(
    const DataDef& data, const ExampleSpec& spec, const LocalSyncPipelineOptions& options,
    const TowerDevices& devices) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto stream, ExampleStream::Open(data, spec, options.seed));
  LoadScheduleOptions loads = options.loads;
  loads.examples = stream.num_examples();
  loads.max_seq_len = stream.rows_per_sequence();
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadSchedule schedule, LoadSchedule::Create(loads));
  LOCKSTEP_RETURN_IF_ERROR(CheckMemory(schedule, stream, loads.workers));
  LOCKSTEP_ASSIGN_OR_RETURN(auto optimizer,
                            LocalSyncParallelOptimizer::Create(
                                {.max_per_device_batch_size = loads.max_per_device_batch_size,
                                 .towers = loads.towers,
                                 .state_inputs = static_cast<int64_t>(spec.state_inputs.size())},
                                devices));
  const absl::Status reserved =
      optimizer->Reserve(stream.AlignedBytes(ExamplesPerLoad(schedule) / loads.towers));
  if (absl::IsResourceExhausted(reserved)) {
    return WithExitCode(absl::Status(reserved.code(), absl::StrCat(reserved.message(),
                                                                   ", or a lower local_sync.load")),
                        ExitCodeFor(reserved));
  }
  LOCKSTEP_RETURN_IF_ERROR(reserved);
  return std::unique_ptr<LocalSyncPipeline>(new LocalSyncPipeline(
      options, schedule, std::move(stream), std::move(optimizer), PinnedTensors(devices.first())));
}

LocalSyncPipeline::LocalSyncPipeline(const LocalSyncPipelineOptions& options,
                                     const LoadSchedule& schedule, ExampleStream stream,
                                     std::unique_ptr<LocalSyncParallelOptimizer> optimizer,
                                     const TensorMaker& make_tensor)
    : options_(options),
      schedule_(schedule),
      stream_(std::move(stream)),
      optimizer_(std::move(optimizer)),
      prefetcher_(
          kLoadsAhead, schedule_.At(schedule_.last_step()).load,
          [this, &make_tensor] {
            std::vector<Batch> block(1);
            block[0] = stream_.MakeBatch(ExamplesPerLoad(schedule_), make_tensor);
            return block;
          },
          [this](int64_t load, std::vector<Batch>* block) {
            stream_.Fill(schedule_.FirstExample(load, options_.replica),
                         schedule_.plan(load).sequences_kept(), &block->front());
          }) {}

absl::StatusOr<const std::vector<Batch>*> LocalSyncPipeline::BatchesFor(GlobalStep step) {
  if (step.value() < 0 || step.value() > schedule_.last_step()) {
    return absl::InvalidArgumentError(
        absl::StrCat("step: expected 0 to ", schedule_.last_step(), ", got ", step.value()));
  }
  const LoadSchedule::Place place = schedule_.At(step.value());
  if (place.load != load_) LOCKSTEP_RETURN_IF_ERROR(Load(place.load));
  if (place.pass != pass_) DrawOrder(place.load, place.pass);
  const LoadPlan& plan = schedule_.plan(place.load);
  const int64_t at = order_[place.batch] * plan.per_device_batch_size();
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Batch>* const batches, optimizer_->BatchesAt(at));
  for (size_t tower = 0; tower < batches->size(); ++tower) {
    const int64_t row = plan.RowsOf(static_cast<int64_t>(tower)).begin + plan.RowsAt(at).begin;
    (*batches)[tower].loaded->examples =
        examples_.subspan(row / plan.max_seq_len(), plan.sequences_per_batch());
  }
  return batches;
}

bool LocalSyncPipeline::IsReady(GlobalStep step) const {
  const int64_t load = schedule_.At(step.value()).load;
  return load == load_ || prefetcher_.Has(load);
}

absl::Status LocalSyncPipeline::Load(int64_t load) {
  load_ = -1;
  pass_ = -1;
  const Batch& block = prefetcher_.Get(load)->front();
  const LoadPlan& plan = schedule_.plan(load);
  const int64_t examples = plan.sequences_kept();
  const TensorView inputs[] = {RowsOf(block.features, examples, plan.max_seq_len()),
                               RowsOf(block.labels, examples, plan.max_seq_len())};
  std::vector<TensorView> states;
  for (const Tensor& state : block.states) states.push_back(RowRange(state.view(), 0, examples));
  LOCKSTEP_RETURN_IF_ERROR(optimizer_->LoadData(inputs, states).status());
  examples_ = block.examples;
  load_ = load;
  absl::MutexLock lock(&mutex_);
  ++report_.loads;
  report_.rows = static_cast<uint64_t>(plan.rows_kept());
  report_.passes = options_.loads.passes;
  report_.per_device_batch_size = plan.per_device_batch_size();
  report_.bytes_to_towers = optimizer_->bytes_to_towers();
  return absl::OkStatus();
}

void LocalSyncPipeline::DrawOrder(int64_t load, int64_t pass) {
  order_.resize(schedule_.plan(load).num_batches());
  // Replicas have orders of their own.
  const uint64_t key = MixSeeds(options_.seed, static_cast<uint64_t>(options_.replica));
  FillEpochOrder(key, static_cast<uint64_t>(load * options_.loads.passes + pass),
                 ShuffleWindow{static_cast<int64_t>(order_.size())}, absl::MakeSpan(order_));
  pass_ = pass;
  absl::MutexLock lock(&mutex_);
  report_.pass = pass;
}

LoadReport LocalSyncPipeline::Report() const {
  absl::MutexLock lock(&mutex_);
  return report_;
}

std::vector<int64_t> LocalSyncPipeline::smaller_batches() const {
  const int64_t last = schedule_.plan(schedule_.loads_per_data_epoch() - 1).sequences_per_batch();
  if (last == schedule_.plan(0).sequences_per_batch()) return {};
  return {last};
}

}  // namespace lockstep::worker
