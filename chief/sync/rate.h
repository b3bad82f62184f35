// Steps per second over the last seconds. Pure.
#pragma once

#include <algorithm>
#include <deque>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace lockstep::chief {

class Rate {
 public:
  void Add(GlobalStep step, absl::Duration now) {
    points_.push_back({step, now});
    while (points_.size() > 2 && now - points_[1].at >= kWindow) points_.pop_front();
  }

  // 0 before the second point. Falls while no step comes.
  double StepsPerSecond(absl::Duration now) const {
    if (points_.size() < 2) return 0;
    const double seconds =
        absl::ToDoubleSeconds(std::max(now - points_.front().at, absl::Milliseconds(1)));
    return static_cast<double>(points_.back().step.value() - points_.front().step.value()) /
           seconds;
  }

 private:
  struct Point {
    GlobalStep step;
    absl::Duration at;
  };
  static constexpr absl::Duration kWindow = absl::Seconds(5);
  std::deque<Point> points_;
};

}  // namespace lockstep::chief
