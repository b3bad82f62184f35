// Pulled values that lie in the ps's memory, which this process sees.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/client/ps_client.h"
#include "common/shm/segment.h"
#include "common/tensor/seq_lock.h"
#include "proto/ps.pb.h"

namespace lockstep {

class MappedValues final : public PulledValues {
 public:
  // Of the answer to `request`. INVALID_ARGUMENT: a place that is not in the memory, other pieces
  // than were asked for.
  static absl::StatusOr<std::unique_ptr<PulledValues>> Read(
      const PullRequest& request, PullReply header, std::shared_ptr<const shm::Segment> memory);

  const PullReply& header() const override { return header_; }
  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const override;
  // INVALID_ARGUMENT: nothing lies there in half the width.
  absl::Status WidenTo(DType wire_type, std::span<const std::span<float>> targets) const override;
  std::span<const std::span<const std::byte>> in_place() const override { return pieces_; }

 private:
  MappedValues() = default;
  absl::Status Add(const PullPiece& asked, const PullPiece& answered);

  PullReply header_;
  std::shared_ptr<const shm::Segment> memory_;  // keeps all below
  // Of a piece of rows: the table from its first row to the last one that is read.
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::vector<int64_t>> rows_;  // by piece; none: all of it is read
  std::vector<const SeqLock*> seq_locks_;
};

// INVALID_ARGUMENT when there is not one target of its size, or none, for each piece.
absl::Status CheckTargets(const PullReply& header, std::span<const std::span<std::byte>> targets);
// The same for pieces of `wire_type`, float16 or bfloat16, and as many elements of float32.
absl::Status CheckNarrowTargets(const PullReply& header, DType wire_type,
                                std::span<const std::span<float>> targets);

}  // namespace lockstep
