// What evaluations found, kept for the chief that comes after the one that made them. Pure.
#pragma once

#include <algorithm>
#include <vector>

#include "common/base/limits.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

class Evaluations {
 public:
  // Takes the place of an earlier one of the same version. The oldest go beyond
  // limits::kMaxKeptEvaluations.
  void Keep(const EvaluatedVersion& evaluated) {
    const auto at =
        std::ranges::lower_bound(kept_, evaluated.version, {}, &EvaluatedVersion::version);
    if (at != kept_.end() && at->version == evaluated.version) {
      *at = evaluated;
      return;
    }
    kept_.insert(at, evaluated);
    if (kept_.size() > limits::kMaxKeptEvaluations) kept_.erase(kept_.begin());
  }

  // By version, ascending.
  const std::vector<EvaluatedVersion>& kept() const { return kept_; }

 private:
  std::vector<EvaluatedVersion> kept_;
};

}  // namespace lockstep::ps
