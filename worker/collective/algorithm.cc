#include "worker/collective/algorithm.h"

#include "common/base/check.h"

namespace lockstep::worker {
namespace {

struct Row {
  Algorithm algorithm;
  absl::string_view name;
  bool is_in_spec;
  bool needs_gpus;
};

constexpr Row kRows[] = {
    {Algorithm::kNccl, "nccl", true, true},
    {Algorithm::kNcclXring, "nccl/xring", true, true},
    {Algorithm::kNcclRechd, "nccl/rechd", true, true},
    {Algorithm::kNcclPscpu, "nccl/pscpu", true, true},
    {Algorithm::kXring, "xring", true, false},
    {Algorithm::kRechd, "rechd", true, false},
    {Algorithm::kPscpu, "pscpu", true, false},
    {Algorithm::kPsgpu, "psgpu", true, true},
    {Algorithm::kPscpuPscpu, "pscpu/pscpu", true, false},
    {Algorithm::kCollective, "collective", true, false},
    {Algorithm::kHierarchicalCopy, "hierarchical_copy", false, false},
    {Algorithm::kReductionToOne, "reduction_to_one", false, false},
    {Algorithm::kGather, "gather", false, false},
};

const Row& RowOf(Algorithm algorithm) {
  const Row& row = kRows[static_cast<int>(algorithm)];
  LOCKSTEP_CHECK(row.algorithm == algorithm);
  return row;
}

}  // namespace

absl::string_view Name(Algorithm algorithm) { return RowOf(algorithm).name; }

std::optional<Algorithm> ParseSpecAlgorithm(absl::string_view name) {
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

bool NeedsGpus(Algorithm algorithm) { return RowOf(algorithm).needs_gpus; }

}  // namespace lockstep::worker
