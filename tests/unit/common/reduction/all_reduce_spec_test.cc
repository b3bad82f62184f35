// The grammar of all_reduce_spec: every accepted form, and the place of every mistake.
#include "common/reduction/all_reduce_spec.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

using A = ReductionAlgorithm;

std::vector<AllReduceRange> Ranges(absl::string_view text) {
  const auto spec = AllReduceSpec::Parse(text);
  INFO(text << ": " << spec.status());
  REQUIRE(spec.ok());
  return {spec->ranges().begin(), spec->ranges().end()};
}

void CheckRefused(absl::string_view text, int character, const std::string& words) {
  const absl::Status status = AllReduceSpec::Parse(text).status();
  INFO(text << ": " << status);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("character " + std::to_string(character) + ":"));
  CHECK_THAT(std::string(status.message()), Catch::Contains(words));
  CHECK_THAT(std::string(status.message()), Catch::Contains("Remedy:"));
}

TEST_CASE("a spec has an algorithm for each range of sizes") {
  CHECK(Ranges("pscpu:2k:pscpu#2:64k:xring") ==
        std::vector<AllReduceRange>{{A::kPscpu, 1, 2048}, {A::kPscpu, 2, 65536}, {A::kXring}});
  CHECK(Ranges("pscpu/pscpu#2") == std::vector<AllReduceRange>{{A::kPscpuPscpu, 2}});
  CHECK(Ranges("xring:1:rechd:2K:psgpu:3M:nccl:4G:collective:5T:nccl/xring") ==
        std::vector<AllReduceRange>{{A::kXring, 1, 1},
                                    {A::kRechd, 1, 2 << 10},
                                    {A::kPsgpu, 1, 3 << 20},
                                    {A::kNccl, 1, int64_t{4} << 30},
                                    {A::kCollective, 1, int64_t{5} << 40},
                                    {A::kNcclXring}});
  CHECK(AllReduceSpec() == *AllReduceSpec::Parse("pscpu/pscpu#2"));
}

TEST_CASE("every algorithm is read by its name, and written by it") {
  const auto names = SpecAlgorithmNames();
  CHECK(names.size() == 10);
  for (const std::string& name : names) {
    const auto spec = AllReduceSpec::Parse(name);
    REQUIRE(spec.ok());
    CHECK(Name(spec->ranges()[0].algorithm) == name);
    CHECK(spec->ToString() == name);
    const AllReduceTuple tuple = {name};
    CHECK(*AllReduceSpec::FromTuples({&tuple, 1}) == *spec);
  }
  CHECK(AllReduceSpec::Parse("pscpu:2k:pscpu#2:64k:xring")->ToString() ==
        "pscpu:2048:pscpu#2:65536:xring");
}

TEST_CASE("a wrong spec is refused with the position of the mistake") {
  CheckRefused("pscpu:2k", 9, "not well formed");
  CheckRefused("", 1, "invalid algorithm \"\"");
  CheckRefused("pscpu:2k:", 10, "invalid algorithm \"\"");
  CheckRefused("foo", 1, "invalid algorithm \"foo\"");
  CheckRefused("hierarchical_copy", 1, "invalid algorithm");
  CheckRefused("Xring", 1, "Did you mean xring?");
  CheckRefused(" xring", 1, "invalid algorithm");
  CheckRefused("pscpu#2/pscpu", 7, "shards \"2/pscpu\"");
  CheckRefused("xring#x", 7, "shards \"x\"");
  CheckRefused("xring#", 7, "shards \"\"");
  CheckRefused("xring#0", 7, "shards \"0\"");
  CheckRefused("xring#-1", 7, "shards \"-1\"");
  CheckRefused("xring#2#3", 7, "shards \"2#3\"");
  CheckRefused("xring#99999999999", 7, "shards");
  CheckRefused("pscpu:2k:xring#x", 16, "shards");
  CheckRefused("pscpu:2m:xring", 7, "limit \"2m\"");
  CheckRefused("pscpu::xring", 7, "limit \"\"");
  CheckRefused("pscpu:k:xring", 7, "limit \"k\"");
  CheckRefused("pscpu:-1:xring", 7, "limit \"-1\"");
  CheckRefused("pscpu:0:xring", 7, "expected more than 0");
  CheckRefused("pscpu:99999999T:xring", 7, "limit");
  CheckRefused("pscpu:2k:xring:2k:rechd", 16, "expected more than 2048");
  CheckRefused("pscpu:2k:xring:1k:rechd", 16, "limits increase");
  CheckRefused("pscpu:2k:xring:4k", 18, "not well formed");
  CheckRefused("x\nring", 1, "x\\nring");
}

TEST_CASE("tuples have one to three elements") {
  const auto ranges = AllReduceSpec::FromTuples(std::vector<AllReduceTuple>{
      {"pscpu", int64_t{1}, int64_t{2048}}, {"pscpu", int64_t{2}, int64_t{65536}}, {"xring"}});
  REQUIRE(ranges.ok());
  CHECK(*ranges == *AllReduceSpec::Parse("pscpu:2k:pscpu#2:64k:xring"));
  const auto two =
      AllReduceSpec::FromTuples(std::vector<AllReduceTuple>{{"pscpu/pscpu", int64_t{2}}});
  CHECK(*two == AllReduceSpec());
}

TEST_CASE("wrong tuples are refused with their number") {
  const auto refused = [](const std::vector<AllReduceTuple>& tuples, const std::string& words) {
    const absl::Status status = AllReduceSpec::FromTuples(tuples).status();
    INFO(status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(words));
  };
  refused({}, "A tuple is expected for all-reduce spec");
  refused({{}}, "Too many elements in the all-reduce spec tuple");
  refused({{"xring", int64_t{1}, int64_t{-1}, int64_t{1}}}, "got 4");
  refused({{int64_t{1}}}, "A tuple is expected for all-reduce spec");
  refused({{"xring", "1"}}, "A tuple is expected for all-reduce spec");
  refused({{"xring#2"}}, "tuple 0: invalid algorithm \"xring#2\"");
  refused({{"xring", int64_t{0}}}, "expected at least 1, got 0");
  refused({{"xring", int64_t{1}, int64_t{5}}}, "expected -1 in the last tuple, got 5");
  refused({{"xring"}, {"xring"}}, "-1 belongs to the last tuple");
  refused({{"xring", int64_t{1}, int64_t{5}}, {"rechd", int64_t{1}, int64_t{5}}, {"pscpu"}},
          "tuple 1: limit: expected more than 5, got 5");
}

TEST_CASE("a tensor goes to the first range whose limit holds its bytes") {
  const auto spec = AllReduceSpec::Parse("pscpu:2k:pscpu#2:64k:xring");
  CHECK(spec->RangeOf(0) == 0);
  CHECK(spec->RangeOf(2048) == 0);
  CHECK(spec->RangeOf(2049) == 1);
  CHECK(spec->RangeOf(65536) == 1);
  CHECK(spec->RangeOf(65537) == 2);
  CHECK(spec->RangeOf(int64_t{1} << 62) == 2);
}

TEST_CASE("nccl and psgpu promise GPUs") {
  CHECK(NeedsGpus(A::kNccl));
  CHECK(NeedsGpus(A::kNcclPscpu));
  CHECK(NeedsGpus(A::kPsgpu));
  CHECK_FALSE(NeedsGpus(A::kPscpuPscpu));
  CHECK_FALSE(NeedsGpus(A::kHierarchicalCopy));
}

}  // namespace
}  // namespace lockstep
