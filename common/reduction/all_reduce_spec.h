// all_reduce_spec: which algorithm reduces a tensor, by the tensor's size. Two forms: the text
// "pscpu:2k:pscpu#2:64k:xring" and TensorFlow's list of tuples (alg, shards, limit).
//
//   spec      = range { ":" limit ":" range }
//   range     = algorithm [ "#" shards ]
//   limit     = digits [ "K" | "k" | "M" | "G" | "T" ]     bytes, powers of 1024
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/reduction/algorithm.h"

namespace lockstep {

struct AllReduceRange {
  ReductionAlgorithm algorithm = ReductionAlgorithm::kPscpuPscpu;
  int shards = 1;      // >= 1
  int64_t limit = -1;  // bytes of the largest tensor of this range; -1: no limit

  friend bool operator==(const AllReduceRange&, const AllReduceRange&) = default;
};

// (alg), (alg, shards) or (alg, shards, limit).
using AllReduceTuple = std::vector<std::variant<std::string, int64_t>>;

// A value. Limits ascend, and the last one is -1.
class AllReduceSpec {
 public:
  // TensorFlow's default, ("pscpu/pscpu", 2, -1). It needs at least two workers.
  AllReduceSpec() : ranges_{{ReductionAlgorithm::kPscpuPscpu, 2, -1}} {}

  // INVALID_ARGUMENT, with the position of the first wrong character, counted from 1.
  static absl::StatusOr<AllReduceSpec> Parse(absl::string_view text);
  // INVALID_ARGUMENT, with the number of the tuple, counted from 0.
  static absl::StatusOr<AllReduceSpec> FromTuples(absl::Span<const AllReduceTuple> tuples);

  absl::Span<const AllReduceRange> ranges() const { return ranges_; }
  // Index of the range for a tensor of so many bytes: the first with a limit >= bytes.
  int RangeOf(int64_t bytes) const;
  // As Parse reads it.
  std::string ToString() const;

  friend bool operator==(const AllReduceSpec&, const AllReduceSpec&) = default;

 private:
  explicit AllReduceSpec(std::vector<AllReduceRange> ranges) : ranges_(std::move(ranges)) {}

  std::vector<AllReduceRange> ranges_;
};

}  // namespace lockstep
