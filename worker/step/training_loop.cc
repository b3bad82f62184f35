#include "worker/step/training_loop.h"

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::worker {
namespace {

constexpr size_t kStepShard = 0;
constexpr absl::Duration kRetryPause = absl::Milliseconds(200);

// Runs an asynchronous call and waits for its answer.
template <typename T, typename Start>
absl::StatusOr<T> Await(Start start) {
  absl::Notification answered;
  absl::StatusOr<T> result;
  start([&](absl::StatusOr<T> answer) {
    result = std::move(answer);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

}  // namespace

TrainingLoop::TrainingLoop(TrainingLoopOptions options, std::span<PsData* const> shards,
                           TowerGroup* towers, Pipeline* data, Progress* progress)
    : options_(std::move(options)),
      shards_(shards.begin(), shards.end()),
      towers_(towers),
      data_(data),
      progress_(progress) {}

TrainingLoop::~TrainingLoop() = default;

absl::Status TrainingLoop::Run() {
  LOCKSTEP_ASSIGN_OR_RETURN(variables_,
                            VariableCache::Create(options_.placement, shards_, options_.identity));
  variables_per_shard_.assign(shards_.size(), 0);
  gradients_.clear();
  for (const VariableSpec& spec : options_.placement.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(spec));
    gradients_.emplace_back(type.dtype, type.shape);
    ++variables_per_shard_[spec.shard()];
  }
  for (Tensor& gradient : gradients_) gradient_views_.push_back(gradient.view());
  for (PsData* shard : shards_) {
    PusherOptions pusher;
    pusher.identity = options_.identity;
    pushers_.push_back(std::make_unique<GradientPusher>(shard, pusher));
  }

  clipper_ = std::make_unique<GradientClipper>(
      options_.clipping, options_.placement, [this](int variable) {
        const VariableSpec& spec = options_.placement.variables(variable);
        pushers_[spec.shard()]->Add(VariableId(spec.id()), gradients_[variable].view());
      });

  GlobalStep local_step = options_.start_step;
  while (true) {
    progress_->StartStep(local_step);
    LOCKSTEP_RETURN_IF_ERROR(RunStep(local_step));
    progress_->WaitFor(absl::StrCat("a token after step ", local_step.value(), " from ",
                                    options_.shard_names[kStepShard]));
    LOCKSTEP_ASSIGN_OR_RETURN(const DequeueTokenReply token, NextToken());
    if (token.done()) {
      progress_->Finish();
      return absl::OkStatus();
    }
    local_step = GlobalStep(token.step());
  }
}

absl::Status TrainingLoop::RunStep(GlobalStep local_step) {
  progress_->WaitFor(absl::StrCat("version ", local_step.value(), " of the variables"));
  LOCKSTEP_ASSIGN_OR_RETURN(const GlobalStep version, variables_->Fetch(local_step));
  // The step was committed without this worker: whatever it computed now would be dropped.
  if (version > local_step) return absl::OkStatus();
  progress_->WaitFor("its own data");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Batch>* batches, data_->BatchesFor(local_step));
  progress_->WaitFor("");

  push_seq_ = push_seq_.next();
  absl::BlockingCounter pending(static_cast<int>(shards_.size()));
  absl::Mutex mutex;
  absl::Status failure;
  PushSummary total;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    pushers_[shard]->Start(push_seq_, local_step, variables_per_shard_[shard],
                           [&](absl::StatusOr<PushSummary> pushed) {
                             {
                               absl::MutexLock lock(&mutex);
                               if (pushed.ok()) {
                                 total.accepted += pushed->accepted;
                                 total.stale += pushed->stale;
                               } else {
                                 failure.Update(pushed.status());
                               }
                             }
                             pending.DecrementCount();
                           });
  }

  const absl::Duration start = options_.clock->Monotonic();
  const uint64_t key = MixSeeds(MixSeeds(options_.seed, options_.identity.worker()),
                                static_cast<uint64_t>(local_step.value()));
  const float loss =
      towers_->Train(*batches, {variables_->values()}, gradient_views_, key,
                     [&](int variable) { clipper_->Ready(variable, gradient_views_[variable]); });
  clipper_->Finish();
  uint64_t examples = 0;
  for (const Batch& batch : *batches) examples += batch.size();
  progress_->Computed(examples, absl::ToDoubleSeconds(options_.clock->Monotonic() - start), loss);

  progress_->WaitFor(absl::StrCat("the ps to take the gradient of step ", local_step.value()));
  pending.Wait();
  if (!failure.ok()) return failure;
  progress_->Pushed(total.accepted, total.stale);
  return absl::OkStatus();
}

absl::StatusOr<DequeueTokenReply> TrainingLoop::NextToken() {
  DequeueTokenRequest request;
  *request.mutable_worker() = options_.identity;
  dequeue_seq_ = dequeue_seq_.next();
  request.set_dequeue_seq(dequeue_seq_.value());
  const absl::Duration start = options_.clock->Monotonic();
  while (true) {
    absl::StatusOr<DequeueTokenReply> token =
        Await<DequeueTokenReply>([&](Done<DequeueTokenReply> done) {
          shards_[kStepShard]->DequeueToken(request, std::move(done));
        });
    // A parked call that reached its deadline is issued again, for as long as it takes; an
    // unreachable ps is given up.
    const bool parked = absl::IsDeadlineExceeded(token.status());
    const bool unreachable = absl::IsUnavailable(token.status()) &&
                             options_.clock->Monotonic() - start < options_.patience;
    if (!parked && !unreachable) return token;
    if (stop_.WaitForNotificationWithTimeout(parked ? absl::ZeroDuration() : kRetryPause)) {
      return absl::CancelledError("training was stopped");
    }
  }
}

}  // namespace lockstep::worker
