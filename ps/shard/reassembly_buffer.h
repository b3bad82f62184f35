// Pushes of which not all chunks have come. A worker has at most one per variable: its newest.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "common/tensor/tensor.h"
#include "common/update/byte_ranges.h"
#include "common/update/gradient.h"
#include "common/update/gradient_parts.h"
#include "ps/ledger/push_ledger.h"

namespace lockstep::ps {

// One variable of one push while it comes in. The fields are guarded by the shard's lock, except
// that the push which has claimed a range of the buffer writes it without the lock.
struct PartialGradient {
  // The others of the pusher, and of the variable: the reassembly's.
  struct Links {
    PartialGradient* previous = nullptr;
    PartialGradient* next = nullptr;
  };

  PushKey key;
  GlobalStep local_step;
  size_t variable = 0;
  Tensor buffer;
  std::shared_ptr<GradientParts> parts;  // in place of the buffer: where the messages are
  Tensor indices;  // of a sparse gradient whose values lie where the worker made them
  ByteRanges claimed;
  uint64_t num_bytes = 0;     // of the whole gradient
  uint64_t received = 0;      // bytes
  int writers = 0;            // messages that are being taken in
  bool counts_early = false;  // as arrived, chunk by chunk
  bool abandoned = false;     // no longer in the reassembly: the last writer gives the buffer back
  Links of_pusher;
  Links of_variable;

  // What it holds of the gradient, which is left without.
  Gradient Take() { return {std::move(buffer), std::move(indices), std::move(parts)}; }
  DType dtype() const { return parts == nullptr ? buffer.dtype() : parts->view().dtype; }
};

// Not thread-safe. What is removed is returned, for the caller to give back the buffers.
class ReassemblyBuffer {
 public:
  using Removed = std::vector<std::shared_ptr<PartialGradient>>;

  // nullptr when nothing of the push has come.
  std::shared_ptr<PartialGradient> Find(const PushKey& key, size_t variable) const;
  // Whatever push of the pusher it is.
  std::shared_ptr<PartialGradient> Find(const Pusher& pusher, size_t variable) const;
  // All of the variable; valid until one of them is removed.
  std::vector<const PartialGradient*> PartialOf(size_t variable) const;
  // Nothing of this pusher's may be there for the variable (CHECK).
  void Add(std::shared_ptr<PartialGradient> incoming);
  void Remove(const PartialGradient& incoming);
  // All of the pusher's.
  Removed RemoveOf(const Pusher& pusher);
  // Of the variable, those of which it is true.
  Removed RemoveIf(size_t variable, absl::FunctionRef<bool(const PartialGradient&)> condition);
  // The same of all variables.
  Removed RemoveIf(absl::FunctionRef<bool(const PartialGradient&)> condition);

 private:
  std::shared_ptr<PartialGradient> Take(const PartialGradient& incoming);

  absl::flat_hash_map<std::pair<Pusher, size_t>, std::shared_ptr<PartialGradient>> incoming_;
  absl::flat_hash_map<Pusher, PartialGradient*> first_of_pusher_;
  std::vector<PartialGradient*>
      first_of_variable_;  // as far as there have been any; otherwise null
};

}  // namespace lockstep::ps
