#include "chief/membership/quorum.h"

#include <algorithm>

namespace lockstep::chief {

Quorum EvaluateQuorum(const QuorumRules& rules, const ReplicaCounts& counts, GlobalStep step) {
  Quorum quorum{.possible = counts.able, .required = rules.aggregate};
  if (rules.counts_tokens) {
    const int64_t tokens = step == rules.start ? rules.initial_tokens : rules.tokens_per_step;
    quorum.possible = tokens + counts.starts - counts.lost_tokens;
    if (counts.stalled) {
      quorum.possible = std::min<int64_t>(quorum.possible, rules.aggregate - int64_t{1});
    }
  }
  if (counts.able == 0) quorum.possible = 0;
  quorum.is_short = quorum.possible < static_cast<int64_t>(rules.aggregate);
  if (!quorum.is_short) return quorum;
  if (rules.on_shortage == OnShortage::kShrink) {
    quorum.required = std::max<uint32_t>(1, counts.able);
    // Nobody died who could have a successor.
    quorum.must_end = counts.out_of_data == counts.replicas;
  }
  quorum.must_end |= rules.on_shortage == OnShortage::kAbort;
  return quorum;
}

}  // namespace lockstep::chief
