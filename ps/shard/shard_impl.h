// The inside of the shard. One lock guards the books; copying chunks, summing and applying happen
// without it. The methods are spread over files by what they do:
//   shard_control.cc   view, creation, end
//   shard_tokens.cc    commit and tokens
//   shard_push.cc      what a push goes through
//   shard_receive.cc   from the bytes of a message to a gradient that is held
//   shard_early.cc     ranges of a variable that are applied before the rest of it has come
//   shard_pull.cc      reading versions
//   shard_close.cc     from a grant to the closed step
//   shard_asynchronous.cc  steps that no chief grants
//   shard_save.cc      kept versions to disk
//   shard_report.cc    what the shard tells about itself
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/thread_pool.h"
#include "common/update/dense_update.h"
#include "ps/shard/deferred_callbacks.h"
#include "ps/shard/epoch_state.h"
#include "ps/shard/parked_pulls.h"
#include "ps/shard/shard.h"
#include "ps/shard/shard_view.h"

namespace lockstep::ps {

class Shard::Impl {
 public:
  explicit Impl(const ShardOptions& options) : options_(options), pool_(options.threads) {}
  // After Stop. Waits for what is done in the background.
  ~Impl();

  // As in shard.h.
  ShardState GetView() const;
  absl::StatusOr<ShardState> SetView(const View& view);
  absl::StatusOr<CreatedVariables> CreateVariables(const CreateVariablesRequest& request);
  void Grant(const GrantOrder& order, Callback<ClosedStep> done);
  absl::StatusOr<GlobalStep> CommitStep(const Command& command, GlobalStep step, bool last);
  absl::StatusOr<SavedShard> Save(const Command& command, GlobalStep version,
                                  const std::string& folder);
  absl::Status ReleaseSnapshot(const Command& command, GlobalStep version,
                               const std::optional<EvaluatedVersion>& evaluation);
  absl::Status Finish(const Command& command);
  absl::Status Admit(const Command& command) const;
  absl::Status Admit(const WorkerIdentity& worker) const;
  absl::StatusOr<PushResult> Push(const PushOrder& order);
  void Pull(const PullOrder& order, Callback<PullResult> done);
  void DequeueToken(const DequeueOrder& order, Callback<Token> done);
  void CancelPull(PullTicket* ticket);
  void Stop();
  ShardReport Report() const;

 private:
  enum class Phase { kServing, kFinished, kStopped };

  struct ParkedGrant {
    GlobalStep step;
    Callback<ClosedStep> done;
    // Of an asynchronous job.
    bool keep_values = false;
    bool keep_slots = false;
    bool now = false;   // keeps what there is, whatever its step
    bool last = false;  // and then the shard stops
  };

  // Bytes [offset, offset + size) of a gradient, which are the message's payload from `from` on.
  struct ChunkRange {
    uint64_t from = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  // A range of which every replica's gradient is whole, while the rest of the variable is not.
  struct ReadyChunk {
    using Gradients = absl::InlinedVector<GradientSource, 4>;
    size_t variable;
    size_t range;
    Gradients gradients;  // in the order of summation
  };

  // A message on its way through Push.
  struct PushContext {
    std::shared_ptr<const Catalog> catalog;
    EpochState* state = nullptr;  // stays while in_flight_ counts this push
    PushKey key;
    std::vector<size_t> variables;  // of the pieces
    struct PendingCopy {
      size_t piece;
      std::shared_ptr<PartialGradient> gradient;
      std::byte* to = nullptr;  // where offset 0 is copied to; null: the gradient is in parts
      std::vector<ChunkRange> ranges;
    };
    std::vector<PendingCopy> copies;
    std::shared_ptr<const GradientParts::Payload> kept;  // of gradients in parts
    std::vector<ReadyChunk> early;
    DeferredCallbacks deferred;
    PushResult result;
    absl::Status refused;  // the first piece for which there was no room
  };

  // What a caller of any kind meets first. UNAVAILABLE: stopping, or creating variables.
  // FAILED_PRECONDITION: there are no variables.
  absl::Status CheckServing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckHosting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdmitCommand(const Command& command) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AdmitWorker(const WorkerIdentity& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ShardState StateNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Null: there are none, or they are of an epoch that is over.
  EpochState* Hosted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_leaving_ ? nullptr : state_.get();
  }

  // Control.
  void EnterEpoch(DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a part in in_flight_: the last one lets go of variables whose epoch is over.
  void EndFlight(DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Large memory, which takes long.
  void LetGo(std::shared_ptr<const void> memory, DeferredCallbacks* deferred) const;
  // Does `work`, which counts in in_flight_, where it keeps nobody waiting.
  void DoInBackground(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  void FailGrants(const absl::Status& status, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Commit(GlobalStep step, bool last, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerDequeues(TokenQueue::Answers answers, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Push.
  // Refuses what is malformed, by looking at the message alone: most of it without the lock.
  absl::Status CheckPush(const PushOrder& order, PushContext* push) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status BeginPush(const PushOrder& order, PushContext* push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status CheckSameGradient(const EpochState& state, const PushOrder& order,
                                        const PushContext& push);
  PushStatus Judge(const PushOrder& order, size_t variable, PushContext* push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClaimChunk(const PushOrder& order, size_t piece, uint64_t position, PushContext* push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The gradient where the worker wrote it; nullopt where it is to be copied.
  static std::optional<Tensor> Borrow(const EpochState& state, const PushOrder& order, size_t piece,
                                      size_t variable);
  // Finds a place for a gradient of which nothing has come yet. Null: there is none, and the piece
  // is refused; or all of it is here, and what is to be copied of it is in the push.
  std::shared_ptr<PartialGradient> AllocateGradient(const PushOrder& order, size_t piece,
                                                    uint64_t position, PushContext* push)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // In a buffer or, where its messages may stay, in parts.
  static bool FindRoom(EpochState* state, DType type, bool may_stay, PartialGradient* gradient);
  // Copies what is to be copied.
  static void CopyPayload(const PushOrder& order, PushContext* push);
  void EndPush(PushContext* push, std::vector<TakenVariable>* all_taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PushStatus AcceptGradient(PartialGradient* gradient, PushContext* push,
                            std::vector<TakenVariable>* all_taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abandon(EpochState* state, ReassemblyBuffer::Removed removed, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a gradient took, in the budget and in memory.
  static void Release(EpochState* state, PartialGradient* gradient, DeferredCallbacks* deferred);
  static void Release(EpochState* state, size_t variable, Tensor buffer,
                      std::shared_ptr<GradientParts> parts, DeferredCallbacks* deferred);
  PushStatus Decide(EpochState* state, const PushKey& key, size_t variable, PushStatus status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Early.
  // A replica's range is whole: with the last replica's it can be made.
  static void Arrived(EpochState* state, size_t variable, size_t range, PushContext* push);
  // The same undone, of ranges that have not been made.
  static void Forget(EpochState* state, const PartialGradient& gradient);
  // Of the step at hand, and before the rest.
  static bool IsMade(const EpochState& state, size_t variable, size_t range);
  // Claims what can be made now, and leaves in `push` that alone.
  void BeginEarly(PushContext* push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static ReadyChunk::Gradients GradientsOf(const EpochState& state, size_t variable);
  // Makes and shows it; what closes with it is the caller's. Without all_taken, ends the caller's
  // part in in_flight_.
  void ApplyReadyChunks(PushContext* push, std::vector<TakenVariable>* all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Pull.
  // Refuses what is malformed, most of it without the lock.
  absl::StatusOr<std::vector<ResolvedPiece>> CheckPull(const PullOrder& order) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts what the pull brings as not read. RESOURCE_EXHAUSTED: it is too much.
  absl::StatusOr<ReaderPin> PinUnread(WorkerIndex worker, const std::vector<ResolvedPiece>& pieces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The result, or the part for which the pull has to wait.
  static ParkedPulls::Attempt TryPull(const EpochState& state, ParkedPull* pull);
  static ParkedPulls::Attempt ReadVersion(const EpochState& state, ParkedPull* pull);
  void ParkPull(ParkedPull pull, const AwaitedPart& part, PullTicket* ticket,
                DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those that wait for the newest version of the variable.
  void RetryPulls(size_t variable, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those that wait for a range that has just been made.
  void RetryPulls(const ReadyChunk& made, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Close.
  absl::Status ParkGrant(const GrantOrder& order, Callback<ClosedStep>* done,
                         DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A variable's gradients have been taken: what was on its way for that step is lost, and the
  // version before the newest makes room.
  void OnTaken(EpochState* state, const TakenVariable& taken, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the variable where it can close now. False: it cannot.
  bool TryClose(EpochState* state, size_t variable, std::vector<TakenVariable>* all_taken,
                DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<TakenVariable> CloseReady(EpochState* state, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies and publishes, then completes the step and goes on with the next as long as there is
  // something to do. Ends the caller's part in in_flight_. Returns HasStopped.
  bool ApplyAndPublish(EpochState* state, std::vector<TakenVariable> all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseRows(EpochState* state, TakenVariable* taken) ABSL_LOCKS_EXCLUDED(mutex_);
  // On any threads: each variable is published as soon as it is whole.
  void CloseDense(EpochState* state, absl::Span<TakenVariable> all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Publish(EpochState* state, absl::Span<TakenVariable> all_taken, absl::Span<NextValue> next)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool CompleteStep(EpochState* state, std::vector<TakenVariable>* all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool CompleteStep(EpochState* state, GrantTerms terms, std::vector<TakenVariable>* all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether what the terms keep takes too long to be copied by a thread that others wait for.
  bool CopiesLong(const EpochState& state, const GrantTerms& terms) const;
  void PublishFrozen(EpochState* state, DeferredCallbacks* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdvanceStep(EpochState* state, std::shared_ptr<Snapshot> snapshot,
                   DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK while every variable has this version: nothing is granted, and nothing of the step at hand
  // has been taken. FAILED_PRECONDITION otherwise.
  absl::Status CheckNewest(GlobalStep version) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // That version. Releases the lock while it copies.
  std::shared_ptr<const Snapshot> CopyNewest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The answer to a grant of a step that is over.
  ClosedStep ClosedNow(GlobalStep step) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Asynchronous.
  // True once the last step has been applied.
  bool HasStopped(const EpochState& state) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets the step at hand close with the next gradient, unless the shard has stopped or pauses.
  void GrantItself(EpochState* state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The step shard waits for the step. What is to be kept of a step that is over, and of any at
  // another shard, is what there is as soon as no variable is being applied: until then nothing
  // further is taken.
  void ParkMilestone(const GrantOrder& order, Callback<ClosedStep>* done,
                     DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As CompleteStep.
  bool KeepNow(EpochState* state, std::vector<TakenVariable>* all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool KeepNow(EpochState* state, const GrantTerms& terms, std::vector<TakenVariable>* all_taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AnswerNow(EpochState* state, const std::shared_ptr<Snapshot>& snapshot,
                 DeferredCallbacks* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardOptions options_;
  ThreadPool pool_;

  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kServing;
  ShardView view_ ABSL_GUARDED_BY(mutex_);
  bool is_creating_ ABSL_GUARDED_BY(mutex_) = false;
  // Calls that use `state_` without the lock: it stays until there are none.
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_background_ ABSL_GUARDED_BY(mutex_) = 0;
  // `state_` is of an epoch that is over: only those in flight know it.
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<EpochState> state_ ABSL_GUARDED_BY(mutex_);
  std::vector<ParkedGrant> grants_ ABSL_GUARDED_BY(mutex_);  // at most one per step
  ParkedPulls pulls_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<WorkerIndex, std::shared_ptr<UnreadReplies>> unread_ ABSL_GUARDED_BY(mutex_);
  DequeueCall last_dequeue_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<DequeueCall, Callback<Token>> dequeues_ ABSL_GUARDED_BY(mutex_);
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stale_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t duplicates_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t rejected_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::ps
