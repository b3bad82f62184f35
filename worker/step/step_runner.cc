#include "worker/step/step_runner.h"

#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kStallEvery = 4;  // steps

PusherOptions PusherOptionsOf(const StepRunnerOptions& options) {
  PusherOptions pusher;
  pusher.identity = options.identity;
  pusher.asynchronous = options.asynchronous;
  pusher.wire_type = options.wire_type;
  pusher.patience = options.patience;
  return pusher;
}

bool ReadsInPlace(const StepRunnerOptions& options) {
  return options.values_in_place && !options.asynchronous;
}

std::vector<std::unique_ptr<JoinedCalls>> JoinedCallsOf(std::span<PsData* const> shards,
                                                        bool in_place) {
  // What is copied comes in several answers, so that the first values are copied while the last are
  // still made; what stays in place comes in one.
  const uint64_t most_bytes =
      in_place ? std::numeric_limits<uint64_t>::max() : PullerOptions().in_memory_chunk_bytes;
  std::vector<std::unique_ptr<JoinedCalls>> joined;
  for (PsData* shard : shards) joined.push_back(std::make_unique<JoinedCalls>(shard, most_bytes));
  return joined;
}

std::vector<PsData*> PointersOf(const std::vector<std::unique_ptr<JoinedCalls>>& joined) {
  std::vector<PsData*> pointers;
  for (const auto& calls : joined) pointers.push_back(calls.get());
  return pointers;
}

// Of the largest gradient; without elements where there is none.
Shape MostOf(const WholeVariable& variable, int64_t most_rows) {
  if (variable.frozen) return Shape({0});
  return variable.sparse ? WithRows(variable.shape, most_rows) : variable.shape;
}

void Multiply(std::span<float> elements, int factor) {
  for (float& element : elements) element *= static_cast<float>(factor);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(const StepRunnerOptions& options,
                                                               const StepParts& parts) {
  std::unique_ptr<StepRunner> runner(new StepRunner(options, parts));
  LOCKSTEP_ASSIGN_OR_RETURN(
      runner->variables_,
      VariableCache::Create(
          *parts.layout, runner->shards_, options.identity,
          options.asynchronous ? VariableCache::kNewest : VariableCache::kValues,
          ReadsInPlace(options) ? VariableCache::kInPlace : VariableCache::kCopied,
          options.wire_type, options.patience));
  return runner;
}

uint64_t StepRunner::GradientBytes(const VariableLayout& layout,
                                   std::span<const int64_t> most_rows) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const WholeVariable& variable = layout.variables()[i];
    if (variable.frozen) continue;
    const auto elements = static_cast<uint64_t>(MostOf(variable, most_rows[i]).num_elements());
    bytes += Tensor::RoomFor(elements * SizeOf(variable.dtype));
  }
  return bytes;
}

StepRunner::StepRunner(const StepRunnerOptions& options, const StepParts& parts)
    : options_(options),
      parts_(parts),
      joined_(JoinedCallsOf(parts.shards, ReadsInPlace(options))),
      shards_(PointersOf(joined_)),
      stamps_(parts.shards.size()),
      sender_(*parts.layout, shards_, PusherOptionsOf(options)),
      clipper_(options.clipping, *parts.layout, [this](int variable) { Send(variable); }) {
  const std::vector<WholeVariable>& variables = parts.layout->variables();
  const std::vector<int64_t> most_rows = parts.rows->MostRows(options.examples);
  for (size_t i = 0; i < variables.size(); ++i) {
    const DType dtype = variables[i].dtype;
    const Shape most = MostOf(variables[i], most_rows[i]);
    if (variables[i].frozen) {
      memory_.emplace_back();
    } else if (parts.memory != nullptr) {
      memory_.push_back(parts.memory->Take(dtype, most));
    } else {
      memory_.emplace_back(dtype, most);
    }
    gradients_.push_back({dtype, variables[i].shape, memory_.back().data()});
  }
}

absl::Status StepRunner::Run(GlobalStep step, DequeueSeq dequeue_seq) {
  if (parts_.timeline != nullptr) parts_.timeline->Started(step);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Batch>* batches, Read(step));
  parts_.progress->WaitForStep("the variables", step);
  LOCKSTEP_ASSIGN_OR_RETURN(const GlobalStep version, variables_->Fetch(step, parts_.rows->rows()));
  if (parts_.timeline != nullptr) parts_.timeline->HaveVariables();
  if (version > step) return absl::OkStatus();
  stamps_.assign(stamps_.size(), step);
  return Push(*batches, step.value(), dequeue_seq).status();
}

absl::StatusOr<bool> StepRunner::RunNewest(GlobalStep batch) {
  if (parts_.timeline != nullptr) parts_.timeline->Started(batch);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Batch>* batches, Read(batch));
  parts_.progress->WaitFor("the newest values of the variables");
  LOCKSTEP_RETURN_IF_ERROR(variables_->FetchNewest(parts_.rows->rows()));
  if (parts_.timeline != nullptr) parts_.timeline->HaveVariables();
  for (size_t shard = 0; shard < stamps_.size(); ++shard) {
    stamps_[shard] = variables_->version_of(shard);
  }
  parts_.progress->StartStep(stamps_[kStepShard]);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::span<const PushSummary> summaries,
                            Push(*batches, batch.value(), DequeueSeq()));
  return summaries[kStepShard].done;
}

absl::StatusOr<const std::vector<Batch>*> StepRunner::Read(GlobalStep batch) {
  if (batches_ != nullptr && batches_of_ == batch) return batches_;
  batches_ = nullptr;
  parts_.progress->WaitFor("its own data");
  LOCKSTEP_ASSIGN_OR_RETURN(batches_, parts_.data->BatchesFor(batch));
  batches_of_ = batch;
  parts_.rows->Collect(*batches_);
  return batches_;
}

void StepRunner::FetchAhead(GlobalStep step) {
  // The gradient of this step is not to wait for data.
  if (parts_.data->IsReady(step) && Read(step).ok()) {
    variables_->FetchAhead(step, parts_.rows->rows());
  } else {
    variables_->FetchAhead(step);
  }
}

absl::StatusOr<std::span<const PushSummary>> StepRunner::Push(const std::vector<Batch>& batches,
                                                              int64_t number,
                                                              DequeueSeq dequeue_seq) {
  parts_.progress->WaitFor("");
  push_seq_ = push_seq_.next();
  if (options_.fetch_ahead) HoldPushes();
  sender_.Start(push_seq_, stamps_);
  LOCKSTEP_RETURN_IF_ERROR(Train(batches, number));
  clipper_.Finish();
  bool waits_for_step = false;
  if (options_.fetch_ahead) {
    FetchAhead(stamps_[kStepShard].next());
    waits_for_step = ReleasePushes(dequeue_seq);
  }
  parts_.progress->WaitForStep(waits_for_step ? "the other workers" : "the ps to take the gradient",
                               stamps_[kStepShard]);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::span<const PushSummary> summaries, sender_.Finish());
  if (parts_.timeline != nullptr) parts_.timeline->Pushed();
  for (const PushSummary& summary : summaries) {
    parts_.progress->Pushed(summary.accepted, summary.stale);
  }
  return summaries;
}

void StepRunner::HoldPushes() {
  for (size_t shard = 0; shard < joined_.size(); ++shard) {
    joined_[shard]->Hold(parts_.layout->pushed_parts(static_cast<uint32_t>(shard)));
  }
}

bool StepRunner::ReleasePushes(DequeueSeq dequeue_seq) {
  bool waits_for_step = false;
  for (size_t shard = 0; shard < joined_.size(); ++shard) {
    const bool waits = joined_[shard]->Release(shard == kStepShard ? dequeue_seq : DequeueSeq());
    waits_for_step = waits_for_step || waits;
  }
  return waits_for_step;
}

absl::Status StepRunner::Train(const std::vector<Batch>& batches, int64_t number) {
  BindRowGradients();
  const absl::Duration start = options_.clock->Monotonic();
  SleepForTrials();
  const uint64_t key =
      MixSeeds(MixSeeds(options_.seed, options_.identity.worker()), static_cast<uint64_t>(number));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float loss,
      parts_.towers->Train(batches, {variables_->views(), parts_.rows->rows()}, gradients_, key,
                           [this](std::span<const int> variables) { Ready(variables); }));
  uint64_t examples = 0;
  for (const Batch& batch : batches) examples += batch.size();
  parts_.progress->Computed(examples, absl::ToDoubleSeconds(options_.clock->Monotonic() - start),
                            loss);
  return absl::OkStatus();
}

void StepRunner::SleepForTrials() {
  const bool stalls = push_seq_.value() % kStallEvery == 0;
  const absl::Duration sleep = options_.sleep + (stalls ? options_.stall : absl::ZeroDuration());
  if (sleep > absl::ZeroDuration()) absl::SleepFor(sleep);
}

void StepRunner::BindRowGradients() {
  const std::vector<WholeVariable>& variables = parts_.layout->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].sparse || variables[i].frozen) continue;
    const TensorView& rows = variables_->views()[i];
    LOCKSTEP_CHECK(rows.num_bytes() <= memory_[i].num_bytes());
    gradients_[i] = {rows.dtype, rows.shape, memory_[i].data()};
  }
}

void StepRunner::Ready(std::span<const int> variables) {
  for (const int variable : variables) {
    const bool trainable = parts_.layout->variables()[variable].trainable;
    if (parts_.timeline != nullptr && trainable) parts_.timeline->HaveGradient();
    if (options_.sum_towers && trainable) {
      Multiply(gradients_[variable].as<float>(), parts_.towers->size());
    }
    clipper_.Ready(variable, gradients_[variable]);
  }
  sender_.Flush();
}

void StepRunner::Send(int variable) {
  if (parts_.layout->variables()[variable].sparse) {
    sender_.SendRows(variable, variables_->part_rows(variable), gradients_[variable]);
  } else {
    sender_.Send(variable, gradients_[variable]);
  }
}

}  // namespace lockstep::worker
