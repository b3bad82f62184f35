// The tensors of one message, as its receiver gets them: in the message, or in the sender's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/tensor/dtype.h"

namespace lockstep {

// A value. Reading is thread-safe.
class ReceivedTensors {
 public:
  using Bytes = std::span<const std::byte>;
  using Segments = std::vector<Bytes>;

  enum class Lifetime {
    kCall,      // until the handler that received them returns
    kOwned,     // while owned_segments() is held
    kBorrowed,  // the sender's memory: while owner() is held. proto/ps.proto says for how long the
                // sender leaves it unchanged.
  };

  // A tensor in the sender's memory.
  struct Reference {
    Bytes values;
    uint64_t size = 0;  // of the tensor, in bytes
    // It consists of these rows: `values` begins with row 0. Empty: it is `values`. Kept by the
    // owner.
    std::span<const int64_t> rows = {};
    bool is_cached = true;  // false: copied past the caches
  };
  // OK while what was read is what the sender meant; ABORTED once it was overwritten.
  using CheckUnchanged = std::function<absl::Status()>;

  ReceivedTensors();  // none
  // kCall.
  explicit ReceivedTensors(Segments segments);
  // kOwned: the owner of the vector keeps its bytes.
  explicit ReceivedTensors(std::shared_ptr<const Segments> segments);
  // kBorrowed, of a request. `segments`, which last for the call, have the references' values and
  // the row indices, which travel as bytes. `owner` keeps the values.
  ReceivedTensors(std::shared_ptr<const Segments> segments, std::vector<Reference> references,
                  std::shared_ptr<const void> owner);
  // kBorrowed, of a reply. `check` is asked after each copy.
  ReceivedTensors(std::vector<Reference> references, std::shared_ptr<const void> owner,
                  CheckUnchanged check);

  Lifetime lifetime() const { return lifetime_; }
  // The bytes of all tensors, one after another, in segments that are cut anywhere, also through
  // elements. Empty for a kBorrowed reply.
  const Segments& segments() const { return *segments_; }
  uint64_t num_bytes() const { return num_bytes_; }  // of the segments
  // kOwned: the segments, for a receiver that keeps them. Otherwise null.
  std::shared_ptr<const Segments> owned_segments() const {
    return lifetime_ == Lifetime::kOwned ? segments_ : nullptr;
  }
  // kBorrowed: one per tensor, of a sparse gradient its values. Otherwise empty.
  const std::vector<Reference>& references() const { return references_; }
  // kBorrowed: keeps the memory. Otherwise null.
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Copies each tensor into its target. INVALID_ARGUMENT: the sizes differ. ABORTED: overwritten
  // meanwhile, receive again. A target without memory skips a tensor that is kBorrowed.
  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const;
  // The same for tensors that were rounded to `wire_dtype`, float16 or bfloat16. Widens them, which
  // is exact.
  absl::Status WidenTo(DType wire_dtype, std::span<const std::span<float>> targets) const;

 private:
  absl::Status CopyReferencesTo(std::span<const std::span<std::byte>> targets) const;

  Lifetime lifetime_ = Lifetime::kCall;
  std::shared_ptr<const Segments> segments_;  // never null
  uint64_t num_bytes_ = 0;
  std::vector<Reference> references_;
  std::shared_ptr<const void> owner_;
  CheckUnchanged check_;  // may be null
};

}  // namespace lockstep
