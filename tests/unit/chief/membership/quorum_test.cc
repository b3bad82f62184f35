#include "chief/membership/quorum.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

QuorumRules PerReplica(OnShortage on_shortage, uint32_t aggregate) {
  return {.on_shortage = on_shortage, .aggregate = aggregate};
}

TEST_CASE("per replica a step needs as many replicas with data as it needs gradients") {
  for (const OnShortage policy : {OnShortage::kWait, OnShortage::kShrink, OnShortage::kAbort}) {
    const QuorumRules rules = PerReplica(policy, 2);
    for (const uint32_t able : {2, 3}) {
      const Quorum quorum = EvaluateQuorum(rules, {.replicas = 3, .able = able}, GlobalStep(7));
      CHECK_FALSE(quorum.is_short);
      CHECK_FALSE(quorum.must_end);
      CHECK(quorum.required == 2);
      CHECK(quorum.possible == able);
    }
  }
}

TEST_CASE("a shortage is waited for, answered with fewer gradients, or ends the job") {
  const ReplicaCounts one{.replicas = 3, .able = 1};
  const Quorum wait = EvaluateQuorum(PerReplica(OnShortage::kWait, 2), one, GlobalStep(7));
  CHECK(wait.is_short);
  CHECK(wait.required == 2);
  CHECK_FALSE(wait.must_end);
  const Quorum shrink = EvaluateQuorum(PerReplica(OnShortage::kShrink, 2), one, GlobalStep(7));
  CHECK(shrink.is_short);
  CHECK(shrink.required == 1);
  CHECK_FALSE(shrink.must_end);
  CHECK(EvaluateQuorum(PerReplica(OnShortage::kAbort, 2), one, GlobalStep(7)).must_end);
}

TEST_CASE("a job that shrinks waits when nobody is left, and ends when nobody has data left") {
  const QuorumRules rules = PerReplica(OnShortage::kShrink, 3);
  const Quorum nobody = EvaluateQuorum(rules, {.replicas = 3}, GlobalStep(7));
  CHECK(nobody.is_short);
  CHECK(nobody.required == 1);
  CHECK_FALSE(nobody.must_end);
  CHECK_FALSE(EvaluateQuorum(rules, {.replicas = 3, .out_of_data = 2}, GlobalStep(7)).must_end);
  CHECK(EvaluateQuorum(rules, {.replicas = 3, .out_of_data = 3}, GlobalStep(7)).must_end);
}

// 60 of 64 replicas, 27 of which leave: five of them with a stamp of the same step.
TEST_CASE("with a token queue stamps count, not workers: tensorflow#20342") {
  const QuorumRules rules{.aggregate = 60,
                          .counts_tokens = true,
                          .start = GlobalStep(0),
                          .initial_tokens = 60,
                          .tokens_per_step = 64};
  ReplicaCounts counts{.replicas = 64, .able = 37, .out_of_data = 27, .lost_tokens = 4};
  Quorum quorum = EvaluateQuorum(rules, counts, GlobalStep(9));
  CHECK(quorum.possible == 60);
  CHECK_FALSE(quorum.is_short);
  counts.lost_tokens = 5;
  quorum = EvaluateQuorum(rules, counts, GlobalStep(9));
  CHECK(quorum.possible == 59);
  CHECK(quorum.is_short);
  // A process that starts at this step brings a stamp of its own.
  counts.starts = 1;
  CHECK_FALSE(EvaluateQuorum(rules, counts, GlobalStep(9)).is_short);
}

TEST_CASE("a queue that stands still has lost a stamp with somebody who died") {
  const QuorumRules rules{.on_shortage = OnShortage::kAbort,
                          .aggregate = 2,
                          .counts_tokens = true,
                          .tokens_per_step = 2};
  ReplicaCounts counts{.replicas = 2, .able = 1};
  CHECK_FALSE(EvaluateQuorum(rules, counts, GlobalStep(9)).is_short);
  counts.stalled = true;
  const Quorum quorum = EvaluateQuorum(rules, counts, GlobalStep(9));
  CHECK(quorum.possible == 1);
  CHECK(quorum.must_end);
  // Replicas are counted anyway, and waiting for a token is nothing special.
  CHECK_FALSE(EvaluateQuorum(PerReplica(OnShortage::kAbort, 1), counts, GlobalStep(9)).is_short);
}

TEST_CASE("the first step of a queue has the initial tokens, and a stamp for each start") {
  QuorumRules rules{.aggregate = 4,
                    .counts_tokens = true,
                    .start = GlobalStep(5),
                    .initial_tokens = 1,
                    .tokens_per_step = 4};
  ReplicaCounts counts{.replicas = 3, .able = 3, .starts = 3};
  CHECK(EvaluateQuorum(rules, counts, GlobalStep(5)).possible == 4);
  CHECK_FALSE(EvaluateQuorum(rules, counts, GlobalStep(5)).is_short);
  rules.initial_tokens = 0;
  CHECK(EvaluateQuorum(rules, counts, GlobalStep(5)).is_short);
  // Tokens alone push nothing.
  counts = {.replicas = 3, .able = 0};
  CHECK(EvaluateQuorum(rules, counts, GlobalStep(6)).is_short);
}

}  // namespace
}  // namespace lockstep::chief
