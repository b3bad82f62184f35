#include "tests/bench/row.h"

namespace lockstep::bench {

std::optional<double> RowResult::ratio() const {
  if (!peer_value.has_value() || *peer_value <= 0 || value <= 0) return std::nullopt;
  return higher_is_better ? value / *peer_value : *peer_value / value;
}

bool RowResult::met() const { return ratio().has_value() && *ratio() >= target; }

}  // namespace lockstep::bench
