#include "common/transport/received_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/gather_rows.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"
#include "common/tensor/non_temporal_copy.h"
#include "common/tensor/segmented_reader.h"
#include "common/tensor/tensor.h"

namespace lockstep {
namespace {

uint64_t SizeOfAll(const ReceivedTensors::Segments& segments) {
  uint64_t size = 0;
  for (const ReceivedTensors::Bytes segment : segments) size += segment.size();
  return size;
}

const std::shared_ptr<const ReceivedTensors::Segments>& NoSegments() {
  static const auto& none = *new std::shared_ptr<const ReceivedTensors::Segments>(
      std::make_shared<const ReceivedTensors::Segments>());
  return none;
}

absl::Status CheckSize(uint64_t target, uint64_t received) {
  if (target == received) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("received ", received, " bytes, targets of ", target));
}

void CopyValues(const ReceivedTensors::Reference& from, std::span<std::byte> to) {
  if (!from.rows.empty()) {
    GatherRows(from.values.data(), to.size() / from.rows.size(), from.rows, to.data());
  } else if (!from.is_cached && to.size() >= kStreamedBytes) {
    NonTemporalCopy(to.data(), from.values.data(), to.size());
  } else {
    std::memcpy(to.data(), from.values.data(), to.size());
  }
}

// By way of a few elements that stay in the nearest cache: segments are cut through elements.
void WidenFrom(SegmentedReader* reader, DType wire_dtype, std::span<float> target) {
  alignas(Tensor::kAlignment) std::array<std::byte, 8192> block;
  alignas(Tensor::kAlignment) std::array<float, block.size() / 2> wide;
  const bool is_streamed = target.size_bytes() >= kStreamedBytes;
  while (!target.empty()) {
    const size_t count = std::min(wide.size(), target.size());
    reader->CopyTo(std::span(block).first(count * SizeOf(wire_dtype)));
    Widen(wire_dtype, block.data(),
          is_streamed ? std::span(wide).first(count) : target.first(count));
    if (is_streamed) NonTemporalCopy(target.data(), wide.data(), count * sizeof(float));
    target = target.subspan(count);
  }
  if (is_streamed) FlushStreams();
}

}  // namespace

ReceivedTensors::ReceivedTensors() : segments_(NoSegments()) {}

ReceivedTensors::ReceivedTensors(Segments segments)
    : segments_(std::make_shared<const Segments>(std::move(segments))),
      num_bytes_(SizeOfAll(*segments_)) {}

ReceivedTensors::ReceivedTensors(std::shared_ptr<const Segments> segments)
    : lifetime_(Lifetime::kOwned),
      segments_(std::move(segments)),
      num_bytes_(SizeOfAll(*segments_)) {}

ReceivedTensors::ReceivedTensors(std::shared_ptr<const Segments> segments,
                                 std::vector<Reference> references,
                                 std::shared_ptr<const void> owner)
    : lifetime_(Lifetime::kBorrowed),
      segments_(std::move(segments)),
      num_bytes_(SizeOfAll(*segments_)),
      references_(std::move(references)),
      owner_(std::move(owner)) {}

ReceivedTensors::ReceivedTensors(std::vector<Reference> references,
                                 std::shared_ptr<const void> owner, CheckUnchanged check)
    : lifetime_(Lifetime::kBorrowed),
      segments_(NoSegments()),
      references_(std::move(references)),
      owner_(std::move(owner)),
      check_(std::move(check)) {}

absl::Status ReceivedTensors::CopyTo(std::span<const std::span<std::byte>> targets) const {
  if (lifetime_ == Lifetime::kBorrowed) return CopyReferencesTo(targets);
  uint64_t size = 0;
  for (const std::span<std::byte>& target : targets) size += target.size();
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(size, num_bytes_));
  SegmentedReader reader(*segments_);
  for (const std::span<std::byte>& target : targets) reader.CopyTo(target);
  return absl::OkStatus();
}

absl::Status ReceivedTensors::CopyReferencesTo(
    std::span<const std::span<std::byte>> targets) const {
  if (targets.size() != references_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("received ", references_.size(), " tensors, targets for ", targets.size()));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].empty()) continue;
    LOCKSTEP_RETURN_IF_ERROR(CheckSize(targets[i].size(), references_[i].size));
    CopyValues(references_[i], targets[i]);
  }
  FlushStreams();
  return check_ == nullptr ? absl::OkStatus() : check_();
}

absl::Status ReceivedTensors::WidenTo(DType wire_dtype,
                                      std::span<const std::span<float>> targets) const {
  if (!IsHalfWidth(wire_dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected bfloat16 or float16, got ", Name(wire_dtype)));
  }
  if (lifetime_ == Lifetime::kBorrowed) {
    return absl::InvalidArgumentError(
        absl::StrCat("asked for ", Name(wire_dtype), ", but answered with values by reference"));
  }
  uint64_t size = 0;
  for (const std::span<float> target : targets) size += target.size() * SizeOf(wire_dtype);
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(size, num_bytes_));
  SegmentedReader reader(*segments_);
  for (const std::span<float> target : targets) WidenFrom(&reader, wire_dtype, target);
  return absl::OkStatus();
}

}  // namespace lockstep
