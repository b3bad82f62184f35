// What a chief does when a worker says goodbye.
#include <catch2/catch.hpp>

#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;

TEST_CASE("a worker that says goodbye is lost at once, and its successor comes in at once") {
  Fixture f;
  f.Train();
  const auto parked = f.Beat(1, 20);
  CHECK_FALSE(parked->has_value());
  const auto waiting = f.Register(1, 21);
  CHECK_FALSE(waiting->has_value());
  const int changes = f.changes;
  const auto goodbye = f.Leave(1, 20);
  REQUIRE(goodbye->has_value());
  CHECK((*goodbye)->ok());
  CHECK(parked->has_value());  // the process waits for its answers
  CHECK(f.changes > changes);
  CHECK(f.membership.members()[1].incarnation == Incarnation(21));
  f.calls.AdmitParked();
  REQUIRE(waiting->has_value());
  CHECK((*waiting)->ok());
}

TEST_CASE("the goodbye of a process that is not the worker any more changes nothing") {
  Fixture f;
  f.Train();
  const auto goodbye = f.Leave(1, 19);
  REQUIRE(goodbye->has_value());
  CHECK(absl::IsAborted((*goodbye)->status()));
  CHECK(f.membership.Live().size() == 2);
}

}  // namespace
}  // namespace lockstep::chief
