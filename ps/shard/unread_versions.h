// UnreadVersions limits what the unread replies to one replica keep in memory: one version of each
// variable, and copies of a few bytes of other versions. Values in half the width are of the same
// version.
//
// A reply refers to the value of a whole variable, however little of it the reply shows. A replica
// pushes the gradient of a version once it has read that version. So the version that it keeps
// takes the memory of the gradient that it does not push.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/tensor/tensor.h"

namespace lockstep::ps {

// Not thread-safe. What it returns may be released on any thread, and after it is gone.
class UnreadVersions {
 public:
  // `copied` counts the bytes of copies that are unread, also those of others that share it.
  UnreadVersions(size_t num_variables, std::shared_ptr<std::atomic<uint64_t>> copied);

  // Returns a pointer to `value`, of a version, that counts as unread while copies of it exist.
  // Null: unread replies keep another value of the variable.
  std::shared_ptr<const Tensor> Keep(size_t variable, GlobalStep version,
                                     std::shared_ptr<const Tensor> value);
  // Counts the bytes of a copy as unread while the result exists. Null: too many are.
  std::shared_ptr<const void> PinCopy(uint64_t bytes);
  // As PinCopy, for bytes that are copied in every reply. While no other copy is unread, any number
  // of them is allowed.
  std::shared_ptr<const void> PinOnlyCopy(uint64_t bytes);
  uint64_t copied_bytes() const { return copied_->load(std::memory_order_relaxed); }
  // Bytes of the values that replies keep.
  uint64_t kept_bytes() const { return kept_bytes_->load(std::memory_order_relaxed); }
  // Of these, bytes of the versions for which `counts` is true.
  uint64_t SumKept(absl::FunctionRef<bool(size_t variable, GlobalStep version)> counts) const;

 private:
  struct KeptValue {
    std::weak_ptr<const Tensor> value;
    uint64_t bytes = 0;
  };
  struct Kept {
    GlobalStep version;
    KeptValue wide;
    KeptValue narrow;
  };

  std::vector<Kept> kept_;  // by variable
  const std::shared_ptr<std::atomic<uint64_t>> copied_;
  const std::shared_ptr<std::atomic<uint64_t>> kept_bytes_;
};

// Adds the bytes to the count while the result exists.
std::shared_ptr<const void> CountBytes(std::shared_ptr<std::atomic<uint64_t>> count,
                                       uint64_t bytes);

}  // namespace lockstep::ps
