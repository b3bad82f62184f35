// Which schedules are refused, and who adds what in those of small topologies.
#include "worker/collective/make_schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace lockstep::worker {
namespace {

using Kind = Operation::Kind;

ScheduleSpec Spec(ReductionAlgorithm algorithm, Topology topology, int shards = 1,
                  size_t length = 8) {
  ScheduleSpec spec{algorithm, topology, shards};
  spec.length = length;
  return spec;
}

void CheckRefused(const ScheduleSpec& spec, const std::string& words) {
  const absl::Status status = MakeSchedule(spec).status();
  INFO(status);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains(words));
  CHECK_THAT(std::string(status.message()), Catch::Contains("Remedy:"));
}

// Ranks that add a total, by the order of their ranges.
std::vector<int> WhoAdds(const ScheduleSpec& spec) {
  std::vector<std::pair<size_t, int>> sums;
  const auto schedule = MakeSchedule(spec);
  REQUIRE(schedule.ok());
  for (int rank = 0; rank < schedule->num_participants(); ++rank) {
    for (const Operation& operation : schedule->operations(rank)) {
      if (operation.is_total) sums.emplace_back(operation.range.first, rank);
    }
  }
  std::ranges::sort(sums);
  std::vector<int> ranks;
  for (const auto& [first, rank] : sums) ranks.push_back(rank);
  return ranks;
}

TEST_CASE("a schedule that an algorithm does not have is refused") {
  CheckRefused(Spec(ReductionAlgorithm::kXring, {1, 1}), "a ring has at least 2 participants");
  CheckRefused(Spec(ReductionAlgorithm::kXring, {4, 2}, 3),
               "expected at most 2, the towers of a worker");
  CheckRefused(Spec(ReductionAlgorithm::kNcclXring, {4, 2}, 2), "expected at most 1");
  CheckRefused(Spec(ReductionAlgorithm::kPscpu, {3, 2}, 4),
               "expected at most 3, the number of gather");
  CheckRefused(Spec(ReductionAlgorithm::kPsgpu, {3, 2}, 7), "expected at most 6");
  CheckRefused(Spec(ReductionAlgorithm::kPscpuPscpu, {2, 2}, 3),
               "expected at most 2, the number of wor");
  CheckRefused(Spec(ReductionAlgorithm::kNccl, {2, 2}), "it reduces the towers of one worker");
  CheckRefused(Spec(ReductionAlgorithm::kHierarchicalCopy, {2, 4}), "towers of one worker");
  CheckRefused(Spec(ReductionAlgorithm::kPscpu, {0, 1}), "no participants");
  CheckRefused(Spec(ReductionAlgorithm::kPscpu, {1, 0}), "no participants");
  CheckRefused(Spec(ReductionAlgorithm::kPscpu, {1, 2}, 0), "shards: expected at least 1, got 0");
  ScheduleSpec rooted = Spec(ReductionAlgorithm::kReductionToOne, {2, 1});
  rooted.root = 2;
  CheckRefused(rooted, "root 2 of 2 participants");
}

TEST_CASE("one worker skips the second level whatever its shards") {
  CHECK(WhoAdds(Spec(ReductionAlgorithm::kPscpuPscpu, {1, 3}, 2)) == std::vector<int>{0});
  CHECK(WhoAdds(Spec(ReductionAlgorithm::kNcclXring, {1, 3})) == std::vector<int>{0});
}

TEST_CASE("shuffles gather on the first towers of workers, or across workers") {
  CHECK(WhoAdds(Spec(ReductionAlgorithm::kPscpu, {3, 2}, 3)) == std::vector<int>{0, 2, 4});
  CHECK(WhoAdds(Spec(ReductionAlgorithm::kPsgpu, {3, 2}, 6)) == std::vector<int>{0, 2, 4, 1, 3, 5});
  CHECK(WhoAdds(Spec(ReductionAlgorithm::kPscpuPscpu, {3, 2}, 2)) == std::vector<int>{0, 2});
}

TEST_CASE("vectors take turns among groups of gather devices") {
  const auto at = [](ReductionAlgorithm algorithm, int shards, int index) {
    ScheduleSpec spec = Spec(algorithm, {4, 1}, shards);
    spec.index = index;
    return WhoAdds(spec);
  };
  CHECK(at(ReductionAlgorithm::kPscpu, 2, 0) == std::vector<int>{0, 2});
  CHECK(at(ReductionAlgorithm::kPscpu, 2, 1) == std::vector<int>{1, 3});
  CHECK(at(ReductionAlgorithm::kPscpu, 2, 2) == std::vector<int>{0, 2});
  CHECK(at(ReductionAlgorithm::kPscpu, 3, 1) == std::vector<int>{1, 3, 1});
  CHECK(at(ReductionAlgorithm::kPscpu, 1, 7) == std::vector<int>{3});
}

TEST_CASE("the main of a hierarchical copy moves with the vector") {
  for (int index = 0; index < 16; ++index) {
    ScheduleSpec spec = Spec(ReductionAlgorithm::kHierarchicalCopy, {1, 8});
    spec.index = index;
    CHECK(WhoAdds(spec) == std::vector<int>{index % 8});
  }
}

TEST_CASE("messages between two participants have the same numbers at both ends") {
  const auto schedule = MakeSchedule(Spec(ReductionAlgorithm::kXring, {2, 4}, 4, 100));
  REQUIRE(schedule.ok());
  std::map<std::pair<int, int>, std::vector<size_t>> sent;
  std::map<std::pair<int, int>, std::vector<size_t>> received;
  for (int rank = 0; rank < 8; ++rank) {
    for (const Operation& operation : schedule->operations(rank)) {
      for (const Term& term : schedule->terms(rank, operation)) {
        if (term.message < 0) continue;
        const bool sends = operation.kind == Kind::kSend;
        auto& list = sends ? sent[{rank, term.rank}] : received[{term.rank, rank}];
        CHECK(term.message == static_cast<int>(list.size()));
        list.push_back(operation.range.first);
      }
    }
  }
  CHECK(sent == received);
}

TEST_CASE("a ring whose vector is shorter than the ring sends nothing empty") {
  const auto schedule = MakeSchedule(Spec(ReductionAlgorithm::kXring, {5, 1}, 1, 2));
  CHECK(schedule->Total() == Traffic{16, 16});
  CHECK(MakeSchedule(Spec(ReductionAlgorithm::kXring, {5, 1}, 1, 0))->Total() == Traffic{0, 0});
}

}  // namespace
}  // namespace lockstep::worker
