// What a push goes through, step by step. It takes the shard's lock for steps 3, 5 and 7. Where
// every gradient of the message lies whole in its worker's memory, step 3 is all of 4 and 5, too.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "ps/shard/shard.h"
#include "ps/shard/step_applier.h"

namespace lockstep::ps {
namespace {

// Of no worker.
constexpr uint32_t kTowerOfMeans = limits::kMaxTowers;

// The next version is made of this gradient, or exists without it.
bool MayWait(const PushArguments& arguments, const PushResult& result) {
  return result.shard_step > arguments.local_step ||
         std::ranges::all_of(result.statuses,
                             [](PushStatus status) { return status == PushStatus::kAccepted; });
}

void PullNext(Shard* shard, const std::optional<PullArguments>& pull, PushPullResult result,
              Callback<PushPullResult> done) {
  if (!pull.has_value()) return done(std::move(result));
  shard->Pull(*pull, [result = std::move(result),
                      done = std::move(done)](absl::StatusOr<PullResult> values) mutable {
    if (values.ok()) result.values = *std::move(values);
    done(std::move(result));
  });
}

}  // namespace

class PushOperation : private StepApplier {
 public:
  PushOperation(Shard* shard, EpochGate::Pass pass, const PushArguments& arguments)
      : StepApplier(std::move(pass)), shard_(shard), push_{arguments} {}

  absl::StatusOr<PushResult> Run();

 private:
  absl::Status Check();                        // step 2
  absl::Status Claim(absl::Status malformed);  // step 3
  // As ValueReader::CheckHasRead, of a message that may bring a worker's gradient.
  absl::Status CheckHasRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    const bool brings = !push_.arguments.ask && !push_.arguments.mean.has_value();
    return brings ? state_->reader.CheckHasRead(push_.arguments.worker) : absl::OkStatus();
  }
  // Of a copy: the mean comes with the grant of the step that it closes.
  absl::Status GrantStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void Accept();  // step 5
  // Of gradients of which nothing is to be copied.
  void AcceptWhole() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void ApplyChunks();  // steps 6 and 7 of early chunks
  PushStatus AcceptGradient(size_t variable, Gradient gradient)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // Leaves the chunks that are to be applied now.
  void ClaimChunks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void NoteProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    push_.result.shard_step = state_->step.shard_step();
    push_.result.done = state_->driver->has_stopped();
  }

  Shard* const shard_;
  PushContext push_;
};

// 1. Enters the epoch.
absl::StatusOr<PushResult> Shard::Push(const PushArguments& arguments) {
  absl::StatusOr<EpochGate::Pass> pass = Enter(arguments.worker);
  if (pass.ok()) return PushOperation(this, *std::move(pass), arguments).Run();
  absl::MutexLock lock(&mutex_);
  ++counts_.rejected;
  return pass.status();
}

absl::StatusOr<PushResult> PushOperation::Run() {
  LOCKSTEP_RETURN_IF_ERROR(Claim(Check()));
  if (!push_.copies.empty()) {
    // 4. Copies what it has claimed.
    GradientReceiver::CopyPayload(&push_);
    Accept();
  }
  if (!push_.ready.empty()) ApplyChunks();
  if (!taken_.empty()) {
    // 6. Applies, 7. publishes and goes on.
    StepApplier::Run();
    push_.result.done = has_stopped_;
  }
  // 8. Leaves the epoch.
  if (!push_.refused.ok()) return push_.refused;
  return std::move(push_.result);
}

// 2. Refuses what is malformed, by looking at the message alone.
absl::Status PushOperation::Check() {
  const PushArguments& arguments = push_.arguments;
  const EpochVariables& variables = state_->variables;
  // The ledger of a copy has the workers' pushes beside those of its primary.
  push_.key = {arguments.worker.worker, arguments.worker.incarnation, arguments.push_seq,
               arguments.mean.has_value() ? kTowerOfMeans : arguments.worker.tower};
  if (arguments.push_seq == PushSeq()) {
    return absl::InvalidArgumentError("push_seq counts from 1, got 0");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(push_.variables, variables.catalog.ResolvePush(arguments));
  if (arguments.ask) return absl::OkStatus();
  // A mean may overflow although none of its gradients did; the primary has judged those.
  const bool is_mean = arguments.mean.has_value();
  return CheckContents(variables.catalog, push_.variables, arguments,
                       variables.config.refuses_non_finite() && !is_mean);
}

// 3. Judges the pieces, and claims bytes and memory. An error of admission takes precedence.
absl::Status PushOperation::Claim(absl::Status malformed) {
  DeferringLock lock(&state_->mu);
  push_.deferred = lock.deferred();
  shard_->mutex_.AssertHeld();  // it is the same
  absl::Status status = shard_->CheckHosting(shard_->view_.CheckWorker(push_.arguments.worker));
  if (status.ok()) status = std::move(malformed);
  if (status.ok()) status = GrantStep();
  if (status.ok()) push_.unread_error = CheckHasRead();
  if (status.ok()) status = state_->receiver.Claim(state_->IsOver(), &push_);
  if (!status.ok() || !push_.refused.ok()) ++shard_->counts_.rejected;
  AcceptWhole();
  // Otherwise Accept does so.
  if (push_.copies.empty()) ClaimChunks();
  NoteProgress();
  return status;
}

absl::Status PushOperation::GrantStep() {
  const PushArguments& arguments = push_.arguments;
  shard_->mutex_.AssertHeld();  // it is the same
  const bool is_copy = shard_->view_.is_copy();
  if (is_copy != arguments.mean.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mean_learning_rate: ", is_copy ? "expected with the mean gradients of a primary, got none"
                                        : "this shard is no copy, and takes gradients alone"));
  }
  if (!is_copy) return absl::OkStatus();
  // STALE would say that the copy serves in place of its primary, which will hear of the end, too.
  if (state_->is_finished) {
    return absl::UnavailableError("the job is over: the copy takes no more means");
  }
  // Of a primary before the one that is to send the state.
  if (state_->incoming != nullptr) {
    if (!state_->incoming->has_begun()) {
      return absl::UnavailableError(
          "the copy awaits the state of its primary, which has not begun to send it: try again");
    }
    state_->incoming->NoteMean();
  }
  Callback<ClosedStep> nobody = [](const absl::StatusOr<ClosedStep>&) {};
  LOCKSTEP_RETURN_IF_ERROR(state_->driver->Park(
      {.step = arguments.local_step, .required = 1, .learning_rate = arguments.mean->learning_rate},
      &nobody, push_.deferred));
  // A step without gradients closes by the grant alone.
  if (arguments.pieces.empty()) PassMilestones(push_.deferred);
  return absl::OkStatus();
}

void PushOperation::AcceptWhole() {
  for (PushContext::WholeGradient& whole : push_.whole) {
    push_.result.statuses[whole.piece] =
        AcceptGradient(push_.variables[whole.piece], std::move(whole.gradient));
  }
}

// 5. Counts gradients that are whole, and takes those of variables that can close.
void PushOperation::Accept() {
  DeferringLock lock(&state_->mu);
  push_.deferred = lock.deferred();
  for (const PushContext::PendingCopy& copy : push_.copies) {
    if (!state_->receiver.Receive(copy, &push_)) continue;
    push_.result.statuses[copy.piece] =
        AcceptGradient(copy.gradient->variable, copy.gradient->Take());
  }
  ClaimChunks();
  NoteProgress();
}

PushStatus PushOperation::AcceptGradient(size_t variable, Gradient gradient) {
  const GlobalStep local_step = push_.arguments.local_step;
  const bool arrives_whole =
      gradient.parts == nullptr && local_step == state_->step.StepOf(variable);
  HeldGradient held{push_.key.worker, push_.key.push_seq, local_step, std::move(gradient),
                    push_.key.incarnation};
  const ConditionalAccumulator& accumulator = state_->step.accumulator(variable);
  const bool is_over = state_->IsOver();
  if (is_over || accumulator.HasCounted(held.worker)) {
    state_->receiver.Release(variable, std::move(held.gradient), push_.deferred);
    if (!is_over) return PushStatus::kAccepted;
    // GrantStep answers the mean when it comes again.
    return push_.arguments.mean.has_value() ? PushStatus::kPending : PushStatus::kStale;
  }
  // Asynchronous: others have taken the last steps while this one was coming in.
  if (accumulator.IsStale(held.local_step)) {
    state_->receiver.Decide(push_.key, variable, PushStatus::kStale);
    state_->receiver.Release(variable, std::move(held.gradient), push_.deferred);
    return PushStatus::kStale;
  }
  const PushStatus status = state_->step.Apply(variable, std::move(held));
  if (push_.arguments.mean.has_value()) {
    state_->receiver.AcceptMean(variable, push_);
  } else {
    state_->receiver.Decide(push_.key, variable, status);
  }
  if (!TryTake(variable, push_.deferred) && arrives_whole) {
    state_->receiver.AddWhole(variable, &push_);
  }
  return status;
}

void PushOperation::ClaimChunks() {
  StepMachine& step = state_->step;
  const bool is_closed = state_->is_finished || !step.terms().has_value();
  // The lock was free since a chunk of a message with copies became ready. If a replica has taken
  // its own back, the message that brings it again makes it ready again.
  std::erase_if(push_.ready, [&](const ReadyChunk& ready) {
    state_->mu.AssertHeld();
    return is_closed || step.IsTaken(ready.variable) ||
           !state_->receiver.IsReady(ready.variable, ready.chunk);
  });
  for (size_t i = 0; i < push_.ready.size(); ++i) {
    ReadyChunk& ready = push_.ready[i];
    VariableEntry& entry = *state_->variables.entries[ready.variable];
    if (!entry.early.has_value()) {
      // All replicas have this step's token: the version before it is no longer needed,
      // and its memory may hold the next.
      entry.variable.DropPrevious().reset();
      entry.early.emplace(step.shard_step(), step.terms()->learning_rate, *entry.rule,
                          state_->ScalarsOf(entry), &entry.variable);
    }
    LOCKSTEP_CHECK(entry.early->ClaimEarly(ready.chunk));
    step.BeginEarly(ready.variable);
    const bool is_next = i > 0 && push_.ready[i - 1].variable == ready.variable;
    ready.gradients =
        is_next ? push_.ready[i - 1].gradients : state_->receiver.GradientsOf(ready.variable);
  }
}

// Here, and not on threads of the pool: what has just come is in this core's caches, and waiting
// for those threads means waiting for all that runs on their cores.
void PushOperation::ApplyChunks() {
  const auto& entries = state_->variables.entries;
  for (ReadyChunk& ready : push_.ready) {
    entries[ready.variable]->early->MakeEarly(ready.chunk, ready.gradients);
    for (const GradientSource& gradient : ready.gradients) {
      if (gradient.parts != nullptr) gradient.parts->LetGo(ready.chunk);
    }
  }
  DeferringLock lock(&state_->mu);
  for (const ReadyChunk& made : push_.ready) {
    VariableEntry& entry = *entries[made.variable];
    entry.variable.ShowPart(entry.early->Unfinished(), entry.early->BytesOf(made.chunk));
    state_->step.EndEarly(made.variable);
  }
  for (const ReadyChunk& made : push_.ready) TryTake(made.variable, lock.deferred());
  for (const ReadyChunk& made : push_.ready) {
    state_->reader.RetryPulls(made.variable, made.chunk, lock.deferred());
  }
  push_.ready.clear();
}

// The token first: later than that of local_step, it exists only when the version does, so that
// nothing read is kept meanwhile.
void PushPull(Shard* shard, const PushArguments& arguments, NextStepArguments next,
              Callback<PushPullResult> done) {
  absl::StatusOr<PushResult> pushed = shard->Push(arguments);
  if (!pushed.ok()) return done(pushed.status());
  PushPullResult result{.push = *std::move(pushed)};
  if (arguments.ask || !MayWait(arguments, result.push)) return done(std::move(result));
  if (next.dequeue_seq == DequeueSeq()) {
    return PullNext(shard, next.pull, std::move(result), std::move(done));
  }
  shard->DequeueToken({arguments.worker, next.dequeue_seq, arguments.local_step},
                      [shard, local_step = arguments.local_step, pull = std::move(next.pull),
                       result = std::move(result),
                       done = std::move(done)](const absl::StatusOr<Token>& token) mutable {
                        // The call that took its place in the queue may also wait for the values.
                        if (!token.ok()) return done(std::move(result));
                        result.token = *token;
                        // FIFO has tokens of steps that are open: the next version may need what is
                        // pushed with it.
                        if (token->step <= local_step) return done(std::move(result));
                        PullNext(shard, pull, std::move(result), std::move(done));
                      });
}

}  // namespace lockstep::ps
