// Configuration selects the runs that a search explores, with the Rules that the roles keep.
// Without any one of the rules a search finds a broken law. So a search that finds none could have
// found one.
#pragma once

#include <array>

#include "tests/model/state.h"

namespace lockstep::model {

struct Rules {
  // Primary and copy.
  bool publish_after_acknowledgment = true;  // not once the delta is sent
  bool acknowledge_after_apply = true;       // not on receipt
  bool old_views_are_refused = true;         // by the copy: deltas of a view older than its own
  bool ledger_travels = true;                // with the delta, so that no push counts twice
  bool copy_keeps_last_version = true;       // readable until its step is committed
  bool restarted_member_obeys_nobody = true;
  // Terms.
  bool older_terms_are_refused = true;
  bool term_belongs_to_one_chief = true;
  bool promotion_fences_primary = true;  // in its term too: sums of the primary are refused
  bool older_orders_are_refused = true;  // of one chief, by the number of the view
  // Chiefs.
  bool take_over_from_both = true;  // unless one says that it leads
  // After the serving member: the copy may be made anew meanwhile. In a job with new copies.
  bool copy_answers_last = true;
  bool one_decision_per_term = true;    // excludes the copy or promotes it, never both
  bool excluded_stays_excluded = true;  // also for later chiefs
  bool commit_after_every_shard = true;
  bool commit_again_at_new_leader = true;
  bool refused_chief_raises_term = true;  // if another chief has the term at one of the pair
  // New copies.
  bool awaiting_copy_is_none = true;       // it is not promoted, and refuses to be
  bool new_copy_gates_publication = true;  // from its begin on, no step is shown before it has it
  bool new_copy_closes_a_step = true;      // with its state, before it counts
  // Workers.
  bool keep_gradient_until_token = true;  // not until ACCEPTED
};

struct Configuration {
  Rules rules;
  int steps = 2;
  int required = 1;  // gradients of a step, of two workers
  int chiefs = 2;
  std::array<int, kMaxChiefs> terms{1, 2, 3, 4};  // the first chief commands at the start
  bool plain_shard = false;                       // a second shard, without a copy
  bool grant_commits = false;                     // closing a step commits it: the only shard
  bool workers_die = false;                       // any number of times; another takes the place
  // A member that has died is started again, and a chief makes it, or a member that was replaced,
  // the new copy.
  bool new_copies = false;
  // A promotion waits until the copy has applied the sums that it received. Otherwise it continues
  // the step with what it received.
  bool promotion_waits = false;

  int TermOf(ChiefId chief) const { return chief == 0 ? 0 : terms[chief - 1]; }
};

}  // namespace lockstep::model
