#include "common/checkpoint/history.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

using Steps = std::vector<int64_t>;

// Epoch 1 was left at 20, epoch 2 at 30; epoch 4 began with the initial values of another run.
const std::vector<HistoryPoint> kPoints = {{10, 1, {}},      {20, 1, {}},      {25, 1, {}},
                                           {22, 2, {1, 20}}, {30, 2, {1, 20}}, {40, 2, {1, 20}},
                                           {35, 3, {2, 30}}, {38, 3, {2, 30}}};

TEST_CASE("a step is reached through the origins of its epochs") {
  CHECK(StepsUpTo(kPoints, 1, 20) == Steps{20, 10});
  CHECK(StepsUpTo(kPoints, 2, 100) == Steps{40, 30, 22, 20, 10});
  CHECK(StepsUpTo(kPoints, 3, 38) == Steps{38, 35, 30, 22, 20, 10});
  // No point of the epoch is left up to there, its origin is known all the same.
  CHECK(StepsUpTo(kPoints, 3, 31) == Steps{30, 22, 20, 10});
  CHECK(StepsUpTo(kPoints, 7, 100).empty());
}

TEST_CASE("the newest finite step of the history counts, then that of any") {
  std::vector<HistoryPoint> points = kPoints;
  CHECK(NewestFinite(points, 3, 38) == 38);
  for (HistoryPoint& point : points) point.is_finite = point.step == 25 || point.step == 10;
  CHECK(NewestFinite(points, 3, 38) == 10);
  CHECK(NewestFinite(points, 7, 38) == 25);
  CHECK(NewestFinite(points, 7, 24) == 10);
  CHECK(NewestFinite(points, 7, 9) == std::nullopt);
}

TEST_CASE("the highest epoch goes on, with what leads to it") {
  CHECK(StepsThatGoOn({}, std::nullopt).empty());
  CHECK(StepsThatGoOn({}, HistoryTip{3, {2, 30}}).empty());
  CHECK(StepsThatGoOn(kPoints, std::nullopt).front() == 38);
  std::vector<HistoryPoint> points = kPoints;
  points.push_back({5, 4, {}});
  CHECK(StepsThatGoOn(points, std::nullopt) == Steps{5});
}

TEST_CASE("a run that has no checkpoint yet goes on from its origin") {
  CHECK(StepsThatGoOn(kPoints, HistoryTip{5, {1, 20}}) == Steps{20, 10});
  CHECK(StepsThatGoOn(kPoints, HistoryTip{5, {2, 39}}) == Steps{30, 22, 20, 10});
  // It began elsewhere, or its epoch has checkpoints, or is none of the folder's.
  for (const HistoryTip& tip : {HistoryTip{5, {0, 20}}, HistoryTip{5, {9, 20}},
                                HistoryTip{3, {1, 20}}, HistoryTip{2, {1, 20}}}) {
    CHECK(StepsThatGoOn(kPoints, tip).front() == 38);
  }
}

TEST_CASE("origins that lead in circles, or forward, end it") {
  CHECK(StepsUpTo({{10, 2, {2, 10}}}, 2, 10) == Steps{10});
  CHECK(StepsUpTo({{10, 1, {2, 20}}, {20, 2, {1, 10}}}, 2, 20) == Steps{20, 10});
}

}  // namespace
}  // namespace lockstep
