// Decides which chief a shard accepts and obeys.
#pragma once

#include "tests/model/rules.h"
#include "tests/model/state.h"

namespace lockstep::model {

// Returns whether a shard that has accepted the term of `accepted` now accepts that of `chief`.
inline bool AcceptsTerm(const Configuration& configuration, ChiefId accepted, ChiefId chief) {
  const int held = configuration.TermOf(accepted);
  const int asked = configuration.TermOf(chief);
  if (configuration.rules.term_belongs_to_one_chief) return asked > held;
  return asked > held || (asked == held && chief != accepted);
}

// Later terms have later views, and so have later orders of a term.
inline int ViewNumber(const Configuration& configuration, const Member& member) {
  const bool counts = configuration.rules.promotion_fences_primary;
  return 4 * configuration.TermOf(member.view) + (counts ? member.order : 0);
}

// Returns whether a shard that has accepted the term of `accepted` obeys an order of `chief`.
inline bool Obeys(const Configuration& configuration, ChiefId accepted, ChiefId chief) {
  const Rules& rules = configuration.rules;
  if (!rules.older_terms_are_refused) return true;
  if (accepted == 0) return !rules.restarted_member_obeys_nobody;
  if (accepted == chief) return true;
  return !rules.term_belongs_to_one_chief &&
         configuration.TermOf(accepted) == configuration.TermOf(chief);
}

}  // namespace lockstep::model
