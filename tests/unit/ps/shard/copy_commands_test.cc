// What a ps that keeps a copy answers to the chief's orders for the shard that another one serves.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/copy_pair.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;
using test::kCommand;
using test::Pair;

// UNAVAILABLE: the chief makes the call again, where the shard is served by then.
void CheckRefused(const absl::Status& status) {
  CAPTURE(status.ToString());
  CHECK(absl::IsUnavailable(status));
  CHECK(absl::StrContains(status.message(), "keeps a copy of shard 0"));
  CHECK(absl::StrContains(status.message(), "which ps 3 serves"));
}

struct Refusing : Pair {
  Refusing() : Pair(test::PlanOfPair(), 2, "ps 3") {}
};

TEST_CASE("a copy is granted no step: its means close it") {
  Refusing pair;
  const auto grant = pair.copy.Grant(0, 2);
  REQUIRE_FALSE(grant.IsParked());
  CheckRefused(grant.status());
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(0));
  // It does what it did: a mean closes the step.
  pair.primary.Grant(0, 2);
  pair.PushStep();
  pair.CopyAll();
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(1));
}

TEST_CASE("a copy commits no step before it serves") {
  Refusing pair;
  pair.primary.Grant(0, 2);
  pair.PushStep();
  pair.CopyAll();
  CheckRefused(pair.copy.shard.CommitStep(kCommand, GlobalStep(0), false).status());
  CHECK(pair.copy.shard.GetView().global_step == GlobalStep(0));
  REQUIRE(pair.Promote(0).ok());
  CHECK(pair.copy.shard.CommitStep(kCommand, GlobalStep(0), false).value() == GlobalStep(1));
}

TEST_CASE("a copy saves nothing: the file is that of the ps that serves") {
  Refusing pair;
  const TemporaryFolder folder;
  CheckRefused(pair.copy.shard.Save(kCommand, GlobalStep(0), folder.path()).status());
  test::Reply<bool> stored;
  pair.copy.shard.AwaitStored(kCommand, GlobalStep(0), stored.done());
  REQUIRE_FALSE(stored.IsParked());
  CheckRefused(stored.status());
  REQUIRE(pair.Promote(0).ok());
  CHECK(pair.copy.shard.Save(kCommand, GlobalStep(0), folder.path()).ok());
}

TEST_CASE("a ps whose place its copy has taken obeys no order for the shard") {
  Refusing pair;
  CHECK_FALSE(pair.primary.shard.GetView().is_deposed);
  pair.target->options.refused(absl::AbortedError("the copy was promoted"));
  CHECK(pair.primary.shard.GetView().is_deposed);
  const auto grant = pair.primary.Grant(0, 2);
  REQUIRE_FALSE(grant.IsParked());
  CHECK(absl::IsUnavailable(grant.status()));
  CHECK(absl::StrContains(grant.status().message(), "in place of this ps"));
  CHECK(
      absl::IsUnavailable(pair.primary.shard.CommitStep(kCommand, GlobalStep(0), false).status()));
}

TEST_CASE("an order of an older term ends its chief at a copy, too") {
  Refusing pair;
  View view = test::ViewOf(0);
  view.is_copy = true;
  view.command.set_term(2);
  REQUIRE(pair.copy.shard.SetView(view).ok());
  const auto grant = pair.copy.Grant(0, 2);
  REQUIRE_FALSE(grant.IsParked());
  CHECK(absl::IsAborted(grant.status()));
}

}  // namespace
}  // namespace lockstep::ps
