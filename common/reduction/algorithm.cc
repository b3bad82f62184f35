#include "common/reduction/algorithm.h"

#include "common/base/check.h"

namespace lockstep {
namespace {

struct Row {
  ReductionAlgorithm algorithm;
  absl::string_view name;
  bool is_in_spec;
  bool needs_gpus;
};

constexpr Row kRows[] = {
    {ReductionAlgorithm::kNccl, "nccl", true, true},
    {ReductionAlgorithm::kNcclXring, "nccl/xring", true, true},
    {ReductionAlgorithm::kNcclRechd, "nccl/rechd", true, true},
    {ReductionAlgorithm::kNcclPscpu, "nccl/pscpu", true, true},
    {ReductionAlgorithm::kXring, "xring", true, false},
    {ReductionAlgorithm::kRechd, "rechd", true, false},
    {ReductionAlgorithm::kPscpu, "pscpu", true, false},
    {ReductionAlgorithm::kPsgpu, "psgpu", true, true},
    {ReductionAlgorithm::kPscpuPscpu, "pscpu/pscpu", true, false},
    {ReductionAlgorithm::kCollective, "collective", true, false},
    {ReductionAlgorithm::kHierarchicalCopy, "hierarchical_copy", false, false},
    {ReductionAlgorithm::kReductionToOne, "reduction_to_one", false, false},
    {ReductionAlgorithm::kGather, "gather", false, false},
};

const Row& RowOf(ReductionAlgorithm algorithm) {
  const Row& row = kRows[static_cast<int>(algorithm)];
  LOCKSTEP_CHECK(row.algorithm == algorithm);
  return row;
}

}  // namespace

absl::string_view Name(ReductionAlgorithm algorithm) { return RowOf(algorithm).name; }

std::optional<ReductionAlgorithm> ParseSpecAlgorithm(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.is_in_spec && row.name == name) return row.algorithm;
  }
  return std::nullopt;
}

std::vector<std::string> SpecAlgorithmNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if (row.is_in_spec) names.emplace_back(row.name);
  }
  return names;
}

bool NeedsGpus(ReductionAlgorithm algorithm) { return RowOf(algorithm).needs_gpus; }

}  // namespace lockstep
