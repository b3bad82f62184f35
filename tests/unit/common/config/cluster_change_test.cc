#include "common/config/cluster_change.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

ClusterSpec Spec() {
  return {.ps = {"a:1", "b:1"}, .workers = {"a:2", "b:2"}, .chief = "a:3", .other_chiefs = {"b:3"}};
}

absl::Status Check(const std::function<void(ClusterSpec*)>& change, ClusterChangeRules rules = {}) {
  ClusterSpec after = Spec();
  change(&after);
  return CheckClusterChange(Spec(), after, rules);
}

std::string ErrorOf(const std::function<void(ClusterSpec*)>& change,
                    ClusterChangeRules rules = {}) {
  const absl::Status status = Check(change, rules);
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains("Remedy: "));
  return std::string(status.message());
}

TEST_CASE("the address of any other task may change, of several at once, too") {
  const auto moves = [](ClusterSpec* spec) {
    spec->ps = {"c:1", "d:1"};
    spec->workers[1] = "d:2";
    spec->chief = "c:3";
    spec->other_chiefs[0] = "d:3";
  };
  CHECK(Check(moves).ok());
  ClusterSpec after = Spec();
  moves(&after);
  CHECK(DescribeClusterChange(Spec(), after) ==
        std::vector<std::string>{"chief 0 moved from a:3 to c:3", "chief 1 moved from b:3 to d:3",
                                 "ps 0 moved from a:1 to c:1", "ps 1 moved from b:1 to d:1",
                                 "worker 1 moved from b:2 to d:2"});
  CHECK(DescribeClusterChange(Spec(), Spec()).empty());
}

TEST_CASE("the number of tasks may not change, but that of workers that come and go") {
  CHECK_THAT(ErrorOf([](ClusterSpec* spec) { spec->ps.push_back("c:1"); }),
             Contains("ps: the job runs with 2 addresses, got 3"));
  CHECK_THAT(ErrorOf([](ClusterSpec* spec) { spec->ps.pop_back(); }), Contains("got 1"));
  CHECK_THAT(ErrorOf([](ClusterSpec* spec) { spec->other_chiefs.clear(); }),
             Contains("chief: the job runs with 2 addresses, got 1"));
  const auto more = [](ClusterSpec* spec) { spec->workers.push_back("c:2"); };
  CHECK_THAT(ErrorOf(more), Contains("worker: the job runs with 2 addresses, got 3") &&
                                Contains("sync.min_replicas"));
  CHECK(Check(more, {.workers_may_change = true}).ok());
  const auto fewer = [](ClusterSpec* spec) { spec->workers.pop_back(); };
  CHECK(Check(fewer, {.workers_may_change = true}).ok());
  CHECK_THAT(ErrorOf(fewer, {.role = Role::kWorker, .index = 1, .workers_may_change = true}),
             Contains("there is no worker 1, which is this process"));
  ClusterSpec after = Spec();
  more(&after);
  CHECK(DescribeClusterChange(Spec(), after) ==
        std::vector<std::string>{"worker 2 (c:2) was added"});
  CHECK(DescribeClusterChange(after, Spec()) ==
        std::vector<std::string>{"worker 2 (c:2) was removed"});
}

TEST_CASE("an address stays that of its task") {
  CHECK_THAT(ErrorOf([](ClusterSpec* spec) { std::swap(spec->ps[0], spec->ps[1]); }),
             Contains("ps 0: b:1 was the address of ps 1"));
  CHECK_THAT(ErrorOf([](ClusterSpec* spec) {
               spec->ps = {"c:1", "a:1"};
             }),
             Contains("ps 1: a:1 was the address of ps 0"));
  CHECK_THAT(ErrorOf([](ClusterSpec* spec) {
               spec->workers[1] = "b:1";
               spec->ps[1] = "c:1";
             }),
             Contains("worker 1: b:1 was the address of ps 1"));
}

TEST_CASE("a process that runs does not move, but its address for the others may") {
  const auto moves = [](ClusterSpec* spec) { spec->ps[1] = "c:1"; };
  CHECK_THAT(ErrorOf(moves, {.role = Role::kPs, .index = 1}),
             Contains("ps 1, which is this process, listens on b:1, got c:1"));
  CHECK(Check(moves, {.role = Role::kPs, .index = 0}).ok());
  CHECK(Check(moves, {.role = Role::kPs, .index = 1, .listens_elsewhere = true}).ok());
}

}  // namespace
}  // namespace lockstep
