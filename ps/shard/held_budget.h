// Memory for gradients that wait for their step, within a budget, and without allocating step by
// step: buffers that come back are used again.
//
// When the budget is short, the variables that close first have precedence. Every worker pushes
// in the opposite order of the placement, so the last variable of a step is the earliest. A buffer
// is given only if, beside everything held for later variables, there is room left for `copies`
// gradients of each earlier one that is still open. So the earliest open variable can always
// gather `copies` gradients, closes, and makes room for the next: no order of arrival blocks for
// ever. Of those `copies` one may come in too slowly: RefusedPushes gives it up.
//
// How large a sparse gradient will be nobody knows before it comes. Room is left for the largest
// that the variable has had, and where that was too little, the earliest open variable gets its
// `copies` beyond the budget.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/tensor/tensor.h"
#include "ps/shard/closing_order.h"

namespace lockstep::ps {

// Not thread-safe.
class HeldBudget {
 public:
  // Buffers of so many bytes have pages of their own, which go back to the system when they are
  // freed: 0.1 ms for a MiB. The caller of TakeFreed frees them. Smaller ones are freed at once, so
  // that the heap has them for the next.
  static constexpr uint64_t kFreedLater = uint64_t{32} << 20;

  // Of a variable's gradients.
  struct Kind {
    Shape shape;
    uint64_t num_bytes = 0;  // as their widest type
    bool is_sparse = false;  // of any size, held as bytes: shape and num_bytes do not count
    bool is_frozen = false;  // there are none, and nobody waits for it
  };

  // `budget` holds at least `copies` of the largest dense kind (CHECK). `replica_bytes`: of a
  // budget that follows the number of replicas, what each of them adds.
  HeldBudget(std::vector<Kind> variables, uint64_t budget, uint32_t copies,
             uint64_t replica_bytes = 0);
  // The budget of so many replicas is no larger than this, but for `copies` of the largest kind,
  // without which no step would close. Only while nothing is held does it shrink: later it would
  // block.
  void SetLimit(std::function<uint64_t(uint32_t replicas)> limit, uint32_t replicas);
  // A step may have so many replicas, and need `copies` gradients. The budget grows where it must;
  // it never shrinks, but with the limit.
  void SetReplicas(uint32_t replicas, uint32_t copies);

  // A buffer with any contents, or nullopt when there is no room or no memory now. `type` is that
  // of a dense gradient, no wider than the variable's (CHECK); `bytes` are those of a sparse one.
  std::optional<Tensor> Acquire(size_t variable, DType type, uint64_t bytes);
  // As Acquire, of a dense gradient of so many bytes that needs no buffer. False: no room now.
  bool Reserve(size_t variable, uint64_t bytes);
  void GiveBack(size_t variable, uint64_t bytes);
  // No other variable closes before it.
  bool IsEarliest(size_t variable) const { return !order_.EarlierThan(variable, 0).any; }
  // Whether such a variable has room for `bytes` once `count` of its gradients, of `freed` bytes,
  // have been given back.
  bool HasRoomWithout(size_t variable, uint32_t count, uint64_t freed, uint64_t bytes) const;
  // The variable goes on to the next step: it closes after those that are still at this one.
  void Close(size_t variable) { order_.Close(variable); }
  // The step begins anew: all variables are to close in it.
  void Restart() { order_.Restart(); }
  // A gradient of so many bytes lies in memory that its worker made: it costs the shard nothing,
  // and needs no buffer here. Spare ones that are one too many with it are let go.
  void Borrow(uint64_t bytes);
  // What was acquired or borrowed.
  void Release(size_t variable, Tensor buffer);
  // Appends what was to be freed since the last call: buffers of at least kFreedLater bytes,
  // and borrowed memory. To be freed where nobody waits for it.
  void TakeFreed(absl::InlinedVector<Tensor, 4>* freed);

  uint64_t held_bytes() const { return held_; }
  // Kept to be given out again.
  uint64_t spare_bytes() const { return spare_; }
  uint64_t budget() const { return budget_; }
  // Bytes of a gradient of the variable: of a sparse one the largest so far; 0: there was none.
  uint64_t reserve(size_t variable) const { return pools_[variable].reserve; }

 private:
  struct Pool {
    Kind kind;
    uint64_t reserve = 0;  // bytes of one gradient, as far as is known
    uint64_t held = 0;     // bytes
    uint32_t num_held = 0;
    std::vector<Tensor> spare;  // given back
  };

  void Hold(size_t variable, uint64_t bytes);
  // As much of `wanted_` as the limit allows.
  uint64_t LimitedBudget() const;
  void AskLimit();
  bool HasRoom(size_t variable, uint64_t bytes) const;
  void UpdateOrder(size_t variable);
  std::optional<Tensor> TakeSpare(Pool* pool, DType type);
  // Frees the buffer, or has it taken by TakeFreed.
  void FreeOrDefer(Tensor buffer);
  // Frees spare buffers until `bytes` more fit beside what is held and borrowed.
  void FreeSpare(uint64_t bytes);

  std::function<uint64_t(uint32_t)> limit_;  // null: none
  uint32_t replicas_ = 0;                    // of the limit
  uint64_t wanted_;                          // the budget without the limit
  uint64_t budget_;
  uint32_t copies_;
  const uint64_t replica_bytes_;
  uint64_t largest_ = 0;  // reserve
  std::vector<Pool> pools_;
  ClosingOrder order_;
  uint64_t held_ = 0;
  uint64_t spare_ = 0;
  uint64_t borrowed_ = 0;
  absl::InlinedVector<Tensor, 4> freed_;  // until they are taken
};

}  // namespace lockstep::ps
