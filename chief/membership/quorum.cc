#include "chief/membership/quorum.h"

#include <algorithm>

namespace lockstep::chief {

Quorum Reckon(const QuorumRules& rules, const Attendance& attendance, GlobalStep step) {
  Quorum quorum{.possible = attendance.able, .required = rules.aggregate};
  if (rules.counts_stamps) {
    const int64_t tokens = step == rules.start ? rules.initial_tokens : rules.tokens_per_step;
    quorum.possible = tokens + attendance.starts - attendance.taken_away;
    if (attendance.stands_still) {
      quorum.possible = std::min<int64_t>(quorum.possible, rules.aggregate - int64_t{1});
    }
  }
  if (attendance.able == 0) quorum.possible = 0;
  quorum.is_short = quorum.possible < static_cast<int64_t>(rules.aggregate);
  if (!quorum.is_short) return quorum;
  if (rules.on_shortage == OnShortage::kShrink) {
    quorum.required = std::max<uint32_t>(1, attendance.able);
    // Nobody died who could have a successor.
    quorum.must_end = attendance.out_of_data == attendance.replicas;
  }
  quorum.must_end |= rules.on_shortage == OnShortage::kAbort;
  return quorum;
}

}  // namespace lockstep::chief
