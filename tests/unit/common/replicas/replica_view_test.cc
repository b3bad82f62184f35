#include "common/replicas/replica_view.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

std::vector<WorkerIndex> Workers(const std::vector<uint32_t>& indices) {
  return {indices.begin(), indices.end()};
}

ReplicaView View(uint64_t number, int64_t first, const std::vector<uint32_t>& workers) {
  return {.number = number,
          .first = GlobalStep(first),
          .workers = Workers(workers),
          .aggregate = static_cast<uint32_t>(workers.size())};
}

std::string ErrorOf(const absl::Status& status) {
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST_CASE("a replica's share is its position among the view's workers") {
  const ReplicaView view = View(4, 10, {1, 3, 7});
  CHECK(view.ShareOf(WorkerIndex(1)) == ReplicaShare{4, 3, 0});
  CHECK(view.ShareOf(WorkerIndex(3)) == ReplicaShare{4, 3, 1});
  CHECK(view.ShareOf(WorkerIndex(7)) == ReplicaShare{4, 3, 2});
  CHECK(view.ShareOf(WorkerIndex(7)).takes_part());
  for (const uint32_t other : {0u, 2u, 8u, std::numeric_limits<uint32_t>::max()}) {
    CHECK(view.ShareOf(WorkerIndex(other)) == ReplicaShare{4, 3, 3});
    CHECK_FALSE(view.ShareOf(WorkerIndex(other)).takes_part());
    CHECK_FALSE(view.Has(WorkerIndex(other)));
  }
}

TEST_CASE("a view that cannot be names what is wrong") {
  CHECK(View(1, 0, {0}).Check().ok());
  CHECK_THAT(ErrorOf(View(0, 0, {0}).Check()), Contains("a number from 1 on"));
  CHECK_THAT(ErrorOf(View(1, -1, {0}).Check()), Contains("first") && Contains("got -1"));
  CHECK_THAT(ErrorOf(View(1, 0, {}).Check()), Contains("at least one worker"));
  CHECK_THAT(ErrorOf(View(1, 0, {1, 0}).Check()), Contains("ascending"));
  CHECK_THAT(ErrorOf(View(1, 0, {1, 1}).Check()), Contains("ascending"));
  ReplicaView view = View(1, 0, {0, 1});
  view.aggregate = 0;
  CHECK_THAT(ErrorOf(view.Check()), Contains("aggregate: expected 1 to 2, got 0"));
  view.aggregate = 3;
  CHECK_THAT(ErrorOf(view.Check()), Contains("got 3"));
}

TEST_CASE("a view holds from its first step until the next one's") {
  ReplicaViews views;
  CHECK(views.empty());
  CHECK(views.At(GlobalStep(0)) == nullptr);
  REQUIRE(views.Add(View(1, 5, {0, 1})).ok());
  REQUIRE(views.Add(View(2, 9, {0, 1, 2})).ok());
  CHECK(views.At(GlobalStep(4)) == nullptr);
  CHECK(views.At(GlobalStep(5))->number == 1);
  CHECK(views.At(GlobalStep(8))->number == 1);
  CHECK(views.At(GlobalStep(9))->number == 2);
  CHECK(views.At(GlobalStep(std::numeric_limits<int64_t>::max()))->number == 2);
  CHECK(views.newest().number == 2);
}

TEST_CASE("views are added in the order of numbers and steps") {
  ReplicaViews views;
  REQUIRE(views.Add(View(3, 5, {0})).ok());
  CHECK_THAT(ErrorOf(views.Add(View(3, 6, {0}))), Contains("it comes after view 3"));
  CHECK_THAT(ErrorOf(views.Add(View(2, 6, {0}))), Contains("it comes after view 3"));
  CHECK_THAT(ErrorOf(views.Add(View(4, 5, {0}))), Contains("after 5, got 5"));
  CHECK_THAT(ErrorOf(views.Add(View(4, 6, {}))), Contains("at least one worker"));
  CHECK(views.views().size() == 1);
  CHECK(views.Add(View(9, 6, {1})).ok());
}

TEST_CASE("views that ended before a step are forgotten, the step's own is not") {
  ReplicaViews views;
  views.ForgetBefore(GlobalStep(3));
  CHECK(views.empty());
  REQUIRE(views.Add(View(1, 0, {0})).ok());
  REQUIRE(views.Add(View(2, 10, {1})).ok());
  REQUIRE(views.Add(View(3, 20, {2})).ok());
  views.ForgetBefore(GlobalStep(9));
  CHECK(views.views().size() == 3);
  views.ForgetBefore(GlobalStep(10));
  CHECK(views.views().size() == 2);
  CHECK(views.At(GlobalStep(9)) == nullptr);
  CHECK(views.At(GlobalStep(15))->number == 2);
  views.ForgetBefore(GlobalStep(1000));
  CHECK(views.views().size() == 1);
  CHECK(views.newest().number == 3);
}

}  // namespace
}  // namespace lockstep
