// PushLedger records the status of every push, so that a repeated message gets the same answer and
// changes nothing. The key is (worker, tower, incarnation, push_seq) and the variable. A pusher
// makes one push after another, so the ledger keeps the newest few; older ones are over.
//
// Not thread-safe.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "ps/accumulator/push_status.h"

namespace lockstep::ps {

// A source of successive pushes: a worker, or in an asynchronous job each of its towers.
struct Pusher {
  WorkerIndex worker;
  uint32_t tower = 0;

  friend bool operator==(const Pusher&, const Pusher&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Pusher& pusher) {
    return H::combine(std::move(state), pusher.worker, pusher.tower);
  }
};

struct PushKey {
  WorkerIndex worker;
  Incarnation incarnation;
  PushSeq push_seq;
  uint32_t tower = 0;

  Pusher pusher() const { return {worker, tower}; }

  friend bool operator==(const PushKey&, const PushKey&) = default;
};

class PushLedger {
 public:
  // The number of pushes kept per incarnation and tower.
  static constexpr int kWindow = 4;

  enum class Age {
    kNew,      // the first message of a push: the pusher has given up its earlier ones
    kCurrent,  // another message of the pusher's newest push
    kOver,     // a newer push began: undecided variables never count
  };

  explicit PushLedger(size_t num_variables) : num_variables_(num_variables) {}

  // Notes that a message of the push was seen. A new incarnation of this pusher discards the
  // records of the last one. INVALID_ARGUMENT: the push had another local_step before.
  // OUT_OF_RANGE: it is further ahead of the newest push than lost pushes can explain
  // (common/base/limits.h); it is not noted.
  absl::StatusOr<Age> Open(const PushKey& key, GlobalStep local_step);

  // The same of a copy, which hears of pushes in any order: keeps the records of this pusher's last
  // incarnation, too.
  absl::StatusOr<Age> OpenCounted(const PushKey& key, GlobalStep local_step);

  // kPending while undecided. kStale for an old push that left a variable undecided or is no longer
  // remembered: it never counts.
  PushStatus Find(const PushKey& key, size_t variable) const;
  // Decides a variable of an open push; a decided one keeps its status.
  void Record(const PushKey& key, size_t variable, PushStatus status);
  // Makes the variable undecided again in the pusher's pushes from step `since` on: its gradient
  // was removed before it was used.
  void Forget(const Pusher& pusher, size_t variable, GlobalStep since);

  // local_step of the newest push of this incarnation (its tower 0); nullopt when it never pushed.
  std::optional<GlobalStep> NewestLocalStep(WorkerIndex worker, Incarnation incarnation) const;

 private:
  struct Entry {
    PushSeq push_seq;  // 0: unused, pushes are counted from 1
    GlobalStep local_step;
    std::vector<PushStatus> statuses;
  };
  struct Pushes {
    Incarnation incarnation;
    PushSeq newest;
    std::array<Entry, kWindow> entries;  // push_seq modulo kWindow
  };

  const Entry* EntryOf(const PushKey& key) const;

  const size_t num_variables_;
  absl::flat_hash_map<Pusher, Pushes> pushes_;
  // Of another incarnation, until a push of that is opened (OpenCounted).
  absl::flat_hash_map<Pusher, Pushes> others_;
};

}  // namespace lockstep::ps
