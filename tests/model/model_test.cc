// The protocol of a ps and its copy in every order of events: no law breaks, and each rule is
// needed.
#include <catch2/catch.hpp>
#include <iterator>
#include <string>

#include "tests/model/search.h"

namespace lockstep::model {
namespace {

constexpr std::array<int, kMaxChiefs> kTwoOfOneTerm{1, 2, 2, 3};

struct Job {
  const char* name;
  Configuration configuration;
  size_t least_states;  // a search that ends with fewer has lost events
};

// Defaults: two steps, one gradient of two closes a step, a chief and its successor.
const Job kJobs[] = {
    {"a chief and its successor", {}, 171'000},
    {"every gradient is needed", {.required = 2}, 27'000},
    {"three steps", {.steps = 3}, 990'000},
    {"three chiefs", {.chiefs = 3}, 1'960'000},
    {"two chiefs of one term", {.required = 2, .chiefs = 4, .terms = kTwoOfOneTerm}, 706'000},
    {"workers die", {.workers_die = true}, 833'000},
    {"the grant carries the commit", {.grant_commits = true, .workers_die = true}, 478'000},
    {"commits wait for a plain shard", {.plain_shard = true}, 630'000},
    {"promotion waits for received sums", {.workers_die = true, .promotion_waits = true}, 805'000},
    {"new copies", {.required = 2, .new_copies = true}, 485'000},
    {"new copies, and workers die",
     {.steps = 3, .required = 2, .chiefs = 1, .workers_die = true, .new_copies = true},
     238'000},
};

// Minutes.
const Job kLargeJobs[] = {
    {"four chiefs", {.required = 2, .chiefs = 4}, 3'200'000},
    {"two chiefs of one term, one gradient of two",
     {.chiefs = 4, .terms = kTwoOfOneTerm},
     4'300'000},
    {"workers die, promotion waits, a plain shard, three chiefs",
     {.required = 2,
      .chiefs = 3,
      .plain_shard = true,
      .workers_die = true,
      .promotion_waits = true},
     10'400'000},
};

template <size_t count>
void CheckJobs(const Job (&jobs)[count]) {
  for (const Job& job : jobs) {
    INFO(job.name);
    const SearchResult result = Search(job.configuration);
    INFO(result.counterexample);
    CHECK(result.broken == Law::kNone);
    CHECK(result.states >= job.least_states);
  }
}

struct SwitchedOff {
  const char* name;
  bool Rules::*rule;
  Configuration configuration;  // in which the rule is needed
  Law broken;
};

const SwitchedOff kSwitchedOff[] = {
    {"publish_after_acknowledgment",
     &Rules::publish_after_acknowledgment,
     {.chiefs = 1},
     Law::kCommittedStaysTrue},
    {"acknowledge_after_apply",
     &Rules::acknowledge_after_apply,
     {.chiefs = 1},
     Law::kCommittedStaysTrue},
    {"old_views_are_refused", &Rules::old_views_are_refused, {.chiefs = 1}, Law::kSummedOnce},
    {"ledger_travels", &Rules::ledger_travels, {.chiefs = 1}, Law::kSummedOnce},
    {"copy_keeps_last_version",
     &Rules::copy_keeps_last_version,
     {.required = 2, .chiefs = 1, .plain_shard = true, .workers_die = true},
     Law::kJobCanFinish},
    {"restarted_member_obeys_nobody",
     &Rules::restarted_member_obeys_nobody,
     {.chiefs = 1},
     Law::kCommittedStaysTrue},
    {"older_terms_are_refused", &Rules::older_terms_are_refused, {}, Law::kOneLeader},
    {"term_belongs_to_one_chief",
     &Rules::term_belongs_to_one_chief,
     {.required = 2, .chiefs = 4, .terms = kTwoOfOneTerm},
     Law::kOneLeader},
    {"promotion_fences_primary", &Rules::promotion_fences_primary, {.chiefs = 1}, Law::kSummedOnce},
    {"older_orders_are_refused",
     &Rules::older_orders_are_refused,
     {.chiefs = 1},
     Law::kPublishedOnce},
    {"take_over_from_both", &Rules::take_over_from_both, {}, Law::kOneLeader},
    {"copy_answers_last",
     &Rules::copy_answers_last,
     {.required = 2, .new_copies = true},
     Law::kOneLeader},
    {"one_decision_per_term", &Rules::one_decision_per_term, {.chiefs = 1}, Law::kOneLeader},
    {"excluded_stays_excluded", &Rules::excluded_stays_excluded, {}, Law::kOneLeader},
    {"commit_after_every_shard",
     &Rules::commit_after_every_shard,
     {.chiefs = 1, .plain_shard = true},
     Law::kJobCanFinish},
    {"commit_again_at_new_leader",
     &Rules::commit_again_at_new_leader,
     {.chiefs = 1},
     Law::kJobCanFinish},
    {"refused_chief_raises_term",
     &Rules::refused_chief_raises_term,
     {.required = 2, .chiefs = 4, .terms = kTwoOfOneTerm},
     Law::kJobCanFinish},
    {"awaiting_copy_is_none",
     &Rules::awaiting_copy_is_none,
     {.required = 2, .chiefs = 1, .new_copies = true},
     Law::kCommittedStaysTrue},
    {"new_copy_gates_publication",
     &Rules::new_copy_gates_publication,
     {.steps = 3, .required = 2, .chiefs = 1, .new_copies = true},
     Law::kCommittedStaysTrue},
    {"new_copy_closes_a_step",
     &Rules::new_copy_closes_a_step,
     {.required = 2, .chiefs = 1, .plain_shard = true, .workers_die = true, .new_copies = true},
     Law::kJobCanFinish},
    {"keep_gradient_until_token",
     &Rules::keep_gradient_until_token,
     {.chiefs = 1},
     Law::kJobCanFinish},
};
static_assert(std::size(kSwitchedOff) == sizeof(Rules), "each rule has a row");

Configuration Without(bool Rules::*rule, Configuration configuration) {
  configuration.rules.*rule = false;
  return configuration;
}

TEST_CASE("no law breaks in any order of events") { CheckJobs(kJobs); }

TEST_CASE("no law breaks in large jobs", "[.large]") { CheckJobs(kLargeJobs); }

TEST_CASE("a law breaks without any one of the rules") {
  for (const SwitchedOff& row : kSwitchedOff) {
    INFO(row.name);
    CHECK(Search(row.configuration).broken == Law::kNone);
    CHECK(Describe(Search(Without(row.rule, row.configuration)).broken) == Describe(row.broken));
  }
}

TEST_CASE("each law is one that can break") {
  const Configuration published_early =
      Without(&Rules::publish_after_acknowledgment, {.chiefs = 1});
  for (const Law law : {Law::kOneValuePerVersion, Law::kPublishedOnce, Law::kCommittedStaysTrue}) {
    CHECK(Describe(SearchFor(law, published_early).broken) == Describe(law));
  }
  const Configuration decided_twice = Without(&Rules::one_decision_per_term, {.chiefs = 1});
  CHECK(SearchFor(Law::kOneLeader, decided_twice).broken == Law::kOneLeader);
}

// Received sums are closed before a worker pushes to the copy, so two rules are redundant.
TEST_CASE("a promotion that waits for received sums needs fewer rules") {
  Configuration configuration{.workers_die = true, .promotion_waits = true};
  configuration.rules.acknowledge_after_apply = false;
  configuration.rules.ledger_travels = false;
  const SearchResult result = Search(configuration);
  INFO(result.counterexample);
  CHECK(result.broken == Law::kNone);
}

TEST_CASE("a counterexample is the fewest events that break the law") {
  const Configuration configuration = Without(&Rules::promotion_fences_primary, {.chiefs = 1});
  CHECK(Search(configuration).counterexample ==
        "chief 1 (term 1) promotes host\n"
        "host obeys chief 1 (term 1): it serves alone\n"
        "worker 0 fetches version 0 from home\n"
        "worker 0 pushes step 0 to home\n"
        "home takes {0} of step 0, sends the sum to host\n"
        "worker 0 pushes step 0 to host\n"
        "host receives the sum of {0} of step 0\n"
        "broken: no gradient is summed twice\n");
}

}  // namespace
}  // namespace lockstep::model
