#include "common/reduction/check_algorithm.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

using Catch::Contains;
using A = ReductionAlgorithm;

void CheckRefused(const absl::Status& status, const std::string& words) {
  INFO(status);
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains(words) && Contains("Remedy: "));
}

absl::Status CheckSpec(const std::string& spec, const Topology& topology, bool has_gpus) {
  return CheckAllReduceSpec(*AllReduceSpec::Parse(spec), topology, has_gpus);
}

TEST_CASE("an algorithm runs on some topologies only") {
  CHECK(CheckAlgorithm(A::kXring, {1, 2}, 2).ok());
  CheckRefused(CheckAlgorithm(A::kXring, {1, 1}, 1), "a ring has at least 2 participants");
  CheckRefused(CheckAlgorithm(A::kXring, {4, 2}, 3), "expected at most 2, the towers of a worker");
  CHECK(CheckAlgorithm(A::kPscpu, {5, 1}, 5).ok());
  CheckRefused(CheckAlgorithm(A::kPscpu, {2, 8}, 5),
               "pscpu over 2 workers with 8 towers each: shards: expected at most 2, the number of "
               "gather devices, got 5. Remedy: write #2 or less");
  CHECK(CheckAlgorithm(A::kPsgpu, {2, 3}, 6).ok());
  CheckRefused(CheckAlgorithm(A::kPsgpu, {2, 3}, 7), "expected at most 6");
  CHECK(CheckAlgorithm(A::kHierarchicalCopy, {1, 3}, 1).ok());
  CheckRefused(CheckAlgorithm(A::kHierarchicalCopy, {2, 3}, 1), "the towers of one worker");
  CheckRefused(CheckAlgorithm(A::kNccl, {2, 3}, 1), "the towers of one worker");
  for (const A algorithm : {A::kRechd, A::kCollective, A::kReductionToOne, A::kGather}) {
    CHECK(CheckAlgorithm(algorithm, {3, 5}, 1).ok());
    CheckRefused(CheckAlgorithm(algorithm, {0, 5}, 1), "no participants");
    CheckRefused(CheckAlgorithm(algorithm, {3, 5}, 0), "shards: expected at least 1, got 0");
  }
}

TEST_CASE("shards of the level between workers count where there is one") {
  CHECK(CheckAlgorithm(A::kPscpuPscpu, {1, 2}, 9).ok());
  CheckRefused(CheckAlgorithm(A::kPscpuPscpu, {2, 9}, 3), "at most 2, the number of workers");
  CHECK(CheckAlgorithm(A::kNcclXring, {1, 2}, 9).ok());
  CheckRefused(CheckAlgorithm(A::kNcclXring, {2, 9}, 2), "expected at most 1");
}

TEST_CASE("every range of a spec runs, with the devices that there are") {
  CHECK(CheckSpec("pscpu:2k:xring#2", {2, 2}, false).ok());
  CheckRefused(CheckSpec("pscpu:2k:xring#3", {2, 2}, false),
               "all_reduce_spec, range 1: xring over");
  CheckRefused(CheckSpec("nccl/xring:2k:xring", {2, 2}, false), "range 0: nccl/xring needs GPUs");
  CHECK(CheckSpec("nccl/xring:2k:psgpu#4", {2, 2}, true).ok());
}

TEST_CASE("an all-reduce has one of two algorithms") {
  CHECK(*ParseAllReduceAlgorithm("hierarchical_copy", false) == A::kHierarchicalCopy);
  CHECK(*ParseAllReduceAlgorithm("nccl", true) == A::kNccl);
  CheckRefused(ParseAllReduceAlgorithm("nccl", false).status(), "nccl needs GPUs");
  CheckRefused(ParseAllReduceAlgorithm("xring", true).status(), "got \"xring\"");
}

}  // namespace
}  // namespace lockstep
