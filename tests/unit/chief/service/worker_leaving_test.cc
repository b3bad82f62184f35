// What a chief does when a worker says goodbye.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/support/log_lines.h"
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

TEST_CASE("a worker that comes and leaves in a loop does not fill the log") {
  Fixture f;
  f.Train();
  uint64_t incarnation = 20;
  const auto lines = test::LogLines([&] {
    for (int i = 0; i < 100; ++i) {
      f.Leave(1, incarnation);
      f.Register(1, ++incarnation);
    }
  });
  CHECK(f.membership.members()[1].incarnation == Incarnation(incarnation));
  // Of 10 two are the first registrations'.
  CHECK(lines.size() == 8);
  f.Pass(absl::Seconds(1));
  const auto later = test::LogLines([&] { f.Leave(1, incarnation); });
  REQUIRE(later.size() == 1);
  CHECK(absl::StrContains(later[0], "has left: it was told to stop (192 such lines left out)"));
}

}  // namespace
}  // namespace lockstep::chief
