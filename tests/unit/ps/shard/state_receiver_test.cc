#include "ps/shard/state_receiver.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

namespace lockstep::ps {
namespace {

StateReceiver OfTwo() {
  return StateReceiver({{0, std::nullopt, VariableId(0), "", "a", 8},
                        {0, 0, VariableId(0), "momentum", "a/momentum", 8},
                        {1, std::nullopt, VariableId(1), "", "empty", 0}});
}

TEST_CASE("state is complete when every byte of every tensor has come, in any order") {
  StateReceiver receiver = OfTwo();
  REQUIRE(receiver.Begin(GlobalStep(3)).ok());
  receiver.RecordPiece(1, 4, 4);
  receiver.RecordPiece(0, 0, 8);
  const absl::Status missing = receiver.Complete(GlobalStep(4));
  CHECK(absl::IsFailedPrecondition(missing));
  CHECK(absl::StrContains(missing.message(), "\"a/momentum\", 8 bytes, those from byte 0"));
  CHECK_FALSE(receiver.is_complete());
  receiver.RecordPiece(1, 0, 5);
  CHECK(receiver.Complete(GlobalStep(4)).ok());
  CHECK(receiver.is_complete());
}

TEST_CASE("a copy can serve when it has closed the step after its last part of the state") {
  StateReceiver receiver({});
  CHECK(receiver.AwaitsState(GlobalStep(9)));
  REQUIRE(receiver.Begin(GlobalStep(3)).ok());
  REQUIRE(receiver.Complete(GlobalStep(4)).ok());
  CHECK(receiver.AwaitsState(GlobalStep(4)));
  CHECK_FALSE(receiver.AwaitsState(GlobalStep(5)));
  // The last message, repeated.
  REQUIRE(receiver.Complete(GlobalStep(5)).ok());
  CHECK_FALSE(receiver.AwaitsState(GlobalStep(5)));
}

TEST_CASE("state begins at one step") {
  StateReceiver receiver = OfTwo();
  CHECK_FALSE(receiver.has_begun());
  REQUIRE(receiver.Begin(GlobalStep(3)).value());
  CHECK(receiver.has_begun());
  REQUIRE(receiver.Begin(GlobalStep(3)).ok());
  CHECK_FALSE(receiver.Begin(GlobalStep(3)).value());
  CHECK(absl::IsFailedPrecondition(receiver.Begin(GlobalStep(2)).status()));
  // A later one counts as long as nothing has been taken.
  REQUIRE(receiver.Begin(GlobalStep(5)).value());
  SECTION("a mean") { receiver.NoteMean(); }
  SECTION("a piece") { receiver.RecordPiece(0, 0, 1); }
  CHECK_FALSE(receiver.Begin(GlobalStep(5)).value());
  CHECK(absl::IsFailedPrecondition(receiver.Begin(GlobalStep(6)).status()));
}

TEST_CASE("state of no bytes that is complete begins no more") {
  StateReceiver receiver({});
  REQUIRE(receiver.Begin(GlobalStep(3)).value());
  REQUIRE(receiver.Complete(GlobalStep(3)).ok());
  CHECK(absl::IsFailedPrecondition(receiver.Begin(GlobalStep(4)).status()));
}

TEST_CASE("pieces of the state are taken at the step that the copy is at, before it changes") {
  StateReceiver receiver = OfTwo();
  const GlobalStep now(5);
  CHECK(absl::IsFailedPrecondition(receiver.CheckStep(now, now, true)));
  REQUIRE(receiver.Begin(GlobalStep(3)).ok());
  CHECK(receiver.CheckStep(now, now, true).ok());
  CHECK(absl::IsAborted(receiver.CheckStep(now, now, false)));
  CHECK(absl::IsAborted(receiver.CheckStep(GlobalStep(4), now, true)));
  CHECK(absl::IsUnavailable(receiver.CheckStep(GlobalStep(6), now, true)));
}

}  // namespace
}  // namespace lockstep::ps
