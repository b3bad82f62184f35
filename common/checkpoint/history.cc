#include "common/checkpoint/history.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

namespace lockstep {

std::vector<int64_t> StepsUpTo(const std::vector<HistoryPoint>& points, uint64_t epoch,
                               int64_t last) {
  std::vector<int64_t> steps;
  while (true) {
    const HistoryPoint* any = nullptr;
    std::vector<int64_t> found;
    for (const HistoryPoint& point : points) {
      if (point.epoch != epoch) continue;
      any = &point;
      if (point.step <= last) found.push_back(point.step);
    }
    std::ranges::sort(found, std::greater<>());
    steps.insert(steps.end(), found.begin(), found.end());
    // An origin is before its epoch: what says otherwise leads in circles.
    if (any == nullptr || any->origin.epoch == 0 || any->origin.epoch >= epoch) return steps;
    epoch = any->origin.epoch;
    last = any->origin.step;
  }
}

std::optional<int64_t> NewestFinite(const std::vector<HistoryPoint>& points, uint64_t epoch,
                                    int64_t last) {
  std::set<int64_t> finite;
  for (const HistoryPoint& point : points) {
    if (point.is_finite && point.step <= last) finite.insert(point.step);
  }
  if (finite.empty()) return std::nullopt;
  for (const int64_t step : StepsUpTo(points, epoch, last)) {
    if (finite.contains(step)) return step;
  }
  return *finite.rbegin();
}

bool HasSavedSince(const std::vector<HistoryPoint>& points, uint64_t epoch) {
  return std::ranges::any_of(points,
                             [epoch](const HistoryPoint& point) { return point.epoch >= epoch; });
}

std::vector<int64_t> StepsThatGoOn(const std::vector<HistoryPoint>& points,
                                   const std::optional<HistoryTip>& tip) {
  const auto newest = std::ranges::max_element(points, {}, &HistoryPoint::epoch);
  if (newest == points.end()) return {};
  if (tip.has_value() && tip->epoch > newest->epoch) {
    std::vector<int64_t> steps = StepsUpTo(points, tip->origin.epoch, tip->origin.step);
    if (tip->origin.epoch > 0 && !steps.empty()) return steps;
  }
  return StepsUpTo(points, newest->epoch, std::numeric_limits<int64_t>::max());
}

}  // namespace lockstep
