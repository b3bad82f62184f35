// Strong integer types for the things that are counted and named in Lockstep, so that a worker
// index cannot be passed where a shard is meant. Cheap values: copy them. Glossary:
// docs/architecture.md, "Words".
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>

namespace lockstep {

template <typename Tag, typename Integer>
class StrongInt {
 public:
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Integer value) : value_(value) {}

  constexpr Integer value() const { return value_; }
  // The largest value is its own successor: peers may send it.
  constexpr StrongInt next() const {
    return value_ == std::numeric_limits<Integer>::max() ? *this : StrongInt(value_ + 1);
  }

  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;
  friend std::ostream& operator<<(std::ostream& out, StrongInt id) { return out << id.value_; }
  template <typename H>
  friend H AbslHashValue(H state, StrongInt id) {
    return H::combine(std::move(state), id.value_);
  }

 private:
  Integer value_ = 0;
};

// Completed steps of the job; also the version of a variable and the stamp (local_step) of a
// gradient.
using GlobalStep = StrongInt<struct GlobalStepTag, int64_t>;
// Position of a ps in the cluster spec.
using ShardIndex = StrongInt<struct ShardIndexTag, uint32_t>;
// Index of the shard with the global step and the tokens.
inline constexpr uint32_t kStepShard = 0;
// Position of a worker in the cluster spec.
using WorkerIndex = StrongInt<struct WorkerIndexTag, uint32_t>;
// The number that a placement gives a variable; valid for one epoch.
using VariableId = StrongInt<struct VariableIdTag, uint32_t>;
// Random id of one process start.
using Incarnation = StrongInt<struct IncarnationTag, uint64_t>;
// Who may command: raised when a chief starts or takes over.
using Term = StrongInt<struct TermTag, uint64_t>;
// Which state this is: raised when state was lost or rolled back.
using Epoch = StrongInt<struct EpochTag, uint64_t>;
// Counts the gradients of one worker; makes a push repeatable.
using PushSeq = StrongInt<struct PushSeqTag, uint64_t>;
// Counts the token requests of one worker; makes a dequeue repeatable.
using DequeueSeq = StrongInt<struct DequeueSeqTag, uint64_t>;

}  // namespace lockstep
