#include "worker/step/training_loop.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "worker/step/persistent_call.h"

namespace lockstep::worker {
namespace {

absl::Status Stopped() { return absl::CancelledError("training was stopped"); }

}  // namespace

absl::Status TrainingLoop::Run() {
  if (IsHalfWidth(options_.step.wire_type)) LOCKSTEP_RETURN_IF_ERROR(ShareMemory());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto runner, StepRunner::Create(options_.step, parts_));
  const absl::Status end =
      options_.step.asynchronous ? RunAsynchronous(runner.get()) : RunSynchronous(runner.get());
  if (end.ok()) {
    parts_.progress->Finish();
  } else {
    // The runner waits for values that it has asked for ahead: they may never come.
    for (PsData* shard : parts_.shards) shard->Cancel();
  }
  return end;
}

absl::Status TrainingLoop::RunSynchronous(StepRunner* runner) {
  GlobalStep local_step = options_.start_step;
  while (true) {
    parts_.progress->StartStep(local_step);
    dequeue_seq_ = dequeue_seq_.next();
    LOCKSTEP_RETURN_IF_ERROR(runner->Run(local_step, dequeue_seq_));
    parts_.progress->WaitForStep("the other workers", local_step);
    LOCKSTEP_ASSIGN_OR_RETURN(const DequeueTokenReply token, NextToken(runner));
    if (token.done()) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(CheckToken(token));
    local_step = GlobalStep(token.step());
  }
}

// Its own count decides the data, since replicas are at no common step. A replica that comes later
// goes on about where all of them together are.
absl::Status TrainingLoop::RunAsynchronous(StepRunner* runner) {
  GlobalStep batch(options_.start_step.value() / options_.num_replicas);
  parts_.progress->StartStep(options_.start_step);
  while (!stop_.HasBeenNotified()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool done, runner->RunNewest(batch));
    if (done) return absl::OkStatus();
    batch = batch.next();
  }
  return Stopped();
}

absl::Status TrainingLoop::CheckToken(const DequeueTokenReply& token) const {
  const int64_t first = options_.start_step.value();
  if (token.step() >= first && token.step() <= options_.max_steps) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(options_.shard_names[kStepShard], ": token of step ",
                                          token.step(), ", expected ", first, " to ",
                                          options_.max_steps));
}

absl::StatusOr<DequeueTokenReply> TrainingLoop::NextToken(StepRunner* runner) {
  if (std::optional<DequeueTokenReply> token = runner->TakeToken()) return *std::move(token);
  DequeueTokenRequest request;
  *request.mutable_worker() = options_.step.identity;
  request.set_dequeue_seq(dequeue_seq_.value());
  return CallPersistently<DequeueTokenReply>(
      [&](Done<DequeueTokenReply> done) {
        parts_.shards[kStepShard]->DequeueToken(request, std::move(done));
      },
      options_.step.patience, options_.step.clock, &stop_);
}

absl::Status TrainingLoop::ShareMemory() {
  for (size_t shard = 0; shard < parts_.shards.size(); ++shard) {
    parts_.progress->WaitFor(absl::StrCat("the memory of ", options_.shard_names[shard]));
    const absl::StatusOr<bool> shares = CallPersistently<bool>(
        [&](Done<bool> done) {
          parts_.shards[shard]->ShareMemory(options_.step.identity, std::move(done));
        },
        options_.step.patience, options_.step.clock, &stop_);
    LOCKSTEP_RETURN_IF_ERROR(shares.status());
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
