// The gradients that come in: whether a message is new, which of its bytes are claimed, where they
// are held, and when a gradient, or a chunk of which all replicas have sent theirs, is whole.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "common/base/clock.h"
#include "ps/ledger/push_ledger.h"
#include "ps/shard/deferred_callbacks.h"
#include "ps/shard/held_budget.h"
#include "ps/shard/reassembly_buffer.h"
#include "ps/shard/refused_pushes.h"
#include "ps/shard/variable_entry.h"
#include "ps/step/step_machine.h"

namespace lockstep::ps {

// Dense gradients of fewer bytes are copied: it costs less than to keep the messages that brought
// them. Their memory is kept for the next ones.
inline constexpr uint64_t kLeastInParts = uint64_t{256} << 10;

// A chunk of which every replica's gradient is whole, while the rest of the variable is not.
struct ReadyChunk {
  using Gradients = absl::InlinedVector<GradientSource, 4>;
  size_t variable;
  size_t chunk;
  Gradients gradients;  // in the order of summation
};

// A message of a push on its way through the shard.
struct PushContext {
  // Bytes [offset, offset + size) of a gradient, which are the payload from `from` on.
  struct ChunkRange {
    uint64_t from = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  struct PendingCopy {
    size_t piece;
    std::shared_ptr<PartialGradient> gradient;
    std::byte* to = nullptr;  // where offset 0 is copied to; null: the gradient is in parts
    std::vector<ChunkRange> ranges;
  };
  // Lies whole in its worker's memory: nothing of it is copied.
  struct WholeGradient {
    size_t piece;
    Gradient gradient;
  };

  const PushArguments& arguments;
  PushKey key = {};
  std::vector<size_t> variables = {};  // of the pieces
  std::vector<PendingCopy> copies = {};
  std::vector<WholeGradient> whole = {};
  std::shared_ptr<const GradientParts::Payload> kept = nullptr;  // of gradients in parts
  std::vector<ReadyChunk> ready = {};
  DeferredCallbacks* deferred = nullptr;  // of the lock that is held
  PushResult result = {};
  absl::Status unread_error = {};  // not OK: no new gradient is held, as the worker has not read
  absl::Status refused = {};       // the first piece for which there was no room
};

// Guarded by the shard's lock, except for CopyPayload.
class GradientReceiver {
 public:
  // All outlive the receiver.
  GradientReceiver(const EpochVariables* variables, const StepMachine* step, HeldBudget budget,
                   const Clock* clock, PushCounts* counts);

  // Judges each piece and claims the bytes that are wanted. `is_over`: gradients are no longer
  // counted. INVALID_ARGUMENT: a worker that does not count, or chunks that differ. The errors of
  // the ledger. What there was no room for is in `push->refused`. Gradients in `push->whole` are
  // the caller's, to be counted before the lock is released: nothing else knows of them.
  absl::Status Claim(bool is_over, PushContext* push);
  // Copies what has been claimed, or keeps the message.
  static void CopyPayload(PushContext* push);
  // The bytes of `copy` are there. True: the gradient is whole, and the caller's.
  bool Receive(const PushContext::PendingCopy& copy, PushContext* push);
  PushStatus Decide(const PushKey& key, size_t variable, PushStatus status);
  // A gradient that counted for the current step was removed: the worker may send it again.
  void Forget(WorkerIndex worker, size_t variable) {
    ledger_.Forget({worker}, variable, step_.StepOf(variable));
  }
  // Of a copy: the push's mean of the variable counts, and with it the workers' gradients.
  void AcceptMean(size_t variable, const PushContext& push);
  // A gradient that was never in parts counts for the step at hand: so do all its chunks.
  void AddWhole(size_t variable, PushContext* push);
  // Each replica's gradient has the chunk, and no push makes it. A replica that leaves takes its
  // own chunks back, and so does one that begins a new push.
  bool IsReady(size_t variable, size_t chunk) const;
  // One of each replica, held or still coming in, in parts.
  ReadyChunk::Gradients GradientsOf(size_t variable) const;
  void Release(size_t variable, Gradient gradient, DeferredCallbacks* deferred);
  // As HeldBudget::SetReplicas.
  void SetReplicas(uint32_t replicas, uint32_t copies) { budget_.SetReplicas(replicas, copies); }
  // A step begins: it does not wait for some variables.
  void BeginStep();
  // The step machine has begun anew at another step.
  void Restart() {
    budget_.Restart();
    BeginStep();
  }
  // The variable's gradients have been taken: what was on its way for that step is stale.
  void OnTaken(const TakenVariable& taken, DeferredCallbacks* deferred);
  // Drops the partial gradients of the pushes for which `condition` is true.
  void AbandonIf(absl::FunctionRef<bool(const PushKey&)> condition, DeferredCallbacks* deferred);

  uint64_t held_bytes() const { return budget_.held_bytes(); }
  // As HeldBudget::reserve.
  uint64_t GradientBytes(size_t variable) const { return budget_.reserve(variable); }
  const PushLedger& ledger() const { return ledger_; }

 private:
  absl::Status CheckSameGradient(const PushContext& push) const;
  PushStatus Judge(bool is_over, size_t variable, const PushContext& push);
  // Takes the gradient, of which nothing has come yet, where the worker wrote it. False: some of it
  // is to be copied.
  bool TakeWhole(size_t piece, PushContext* push);
  // Claims the bytes of the piece that no other message has claimed.
  void ClaimChunk(size_t piece, uint64_t position, PushContext* push);
  // Finds a place for a gradient of which nothing has come yet. Null: there is none, and the piece
  // is refused; or its values lie in its worker's memory, and its row indices are in the push.
  std::shared_ptr<PartialGradient> AllocateGradient(size_t piece, uint64_t position,
                                                    PushContext* push);
  // The gradient where the worker wrote it; nullopt where it is to be copied.
  std::optional<Tensor> Borrow(size_t piece, const PushContext& push) const;
  // In a buffer or, where its messages may stay, in parts. False: no room.
  bool FindRoom(DType type, bool may_stay, PartialGradient* gradient);
  // Gives up partial gradients of other workers that come in too slowly, where that makes room for
  // `bytes`. False: none.
  bool MakeRoom(size_t piece, uint64_t bytes, PushContext* push);
  void AddChunk(size_t variable, size_t chunk, PushContext* push);
  // Applied in the step at hand, before the rest.
  bool IsApplied(size_t variable, size_t chunk) const;
  void Abandon(const ReassemblyBuffer::Removed& removed, DeferredCallbacks* deferred);

  const EpochVariables& variables_;
  const StepMachine& step_;
  const Clock& clock_;
  PushLedger ledger_;
  ReassemblyBuffer reassembly_;
  HeldBudget budget_;
  RefusedPushes refused_;
  std::vector<std::vector<uint32_t>> arrived_;  // replicas, by chunk, of variables with chunks
  PushCounts& counts_;
};

}  // namespace lockstep::ps
