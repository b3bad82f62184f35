#include <catch2/catch.hpp>

#include "ps/shard/snapshot_store.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

EvaluatedVersion At(int64_t version, double loss = 0) {
  return {.version = GlobalStep(version), .examples = 10, .loss = loss};
}

TEST_CASE("evaluations are kept by version, the newest hundred, the later one of a version") {
  Evaluations evaluations;
  for (const int64_t version : {30, 10, 20}) evaluations.Keep(At(version));
  evaluations.Keep(At(20, 0.5));
  REQUIRE(evaluations.kept().size() == 3);
  CHECK(evaluations.kept()[1].version == GlobalStep(20));
  CHECK(evaluations.kept()[1].loss == 0.5);
  for (int64_t version = 100; version < 200; ++version) evaluations.Keep(At(version));
  REQUIRE(evaluations.kept().size() == 100);
  CHECK(evaluations.kept().front().version == GlobalStep(100));
  CHECK(evaluations.kept().back().version == GlobalStep(199));
}

TEST_CASE("a shard tells the next chief what evaluations found") {
  test::Harness h(test::OneVariable());
  REQUIRE(h.shard.ReleaseSnapshot(test::kCommand, GlobalStep(3), At(3, 0.25)).ok());
  REQUIRE(h.shard.ReleaseSnapshot(test::kCommand, GlobalStep(4)).ok());
  const ShardState seen = h.shard.GetView();
  REQUIRE(seen.evaluations.size() == 1);
  CHECK(seen.evaluations[0].version == GlobalStep(3));
  CHECK(seen.evaluations[0].loss == 0.25);
}

}  // namespace
}  // namespace lockstep::ps
