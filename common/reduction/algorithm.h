// The algorithms of a reduction over many participants, by the names that TensorFlow gives them.
// docs/collectives.md has their orders of addition, messages and bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

enum class ReductionAlgorithm {
  kNccl,
  kNcclXring,
  kNcclRechd,
  kNcclPscpu,
  kXring,
  kRechd,
  kPscpu,
  kPsgpu,
  kPscpuPscpu,
  kCollective,
  // These have no name in an all_reduce_spec.
  kHierarchicalCopy,
  kReductionToOne,
  kGather,  // no sum: a part of each participant, in the order of their ranks
};

// "nccl/xring", "hierarchical_copy", "reduction_to_one".
absl::string_view Name(ReductionAlgorithm algorithm);
// Of an all_reduce_spec. nullopt for an unknown name and for those that no spec names.
std::optional<ReductionAlgorithm> ParseSpecAlgorithm(absl::string_view name);
// All that ParseSpecAlgorithm knows.
std::vector<std::string> SpecAlgorithmNames();
// The name promises NCCL or memory of GPUs.
bool NeedsGpus(ReductionAlgorithm algorithm);

}  // namespace lockstep
