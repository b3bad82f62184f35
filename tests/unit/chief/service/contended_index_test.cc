// Two processes want to be one worker: the one that is there lives, or has died.
#include <catch2/catch.hpp>

#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;

TEST_CASE("a second process of one index is told to wait, then refused") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  f.clock.Advance(absl::Milliseconds(10));
  const auto first = f.Register(0, 11);
  f.Pass(absl::Seconds(1));
  f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  REQUIRE(first->has_value());
  CHECK_FALSE((**first)->ready());
  CHECK((**first)->waiting_for().find("pid 17") != std::string::npos);
  const auto second = f.Register(0, 11);
  CHECK((*second)->status().code() == absl::StatusCode::kAlreadyExists);
}

TEST_CASE("a heartbeat of a dead process that comes late does not turn its successor away") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  f.Register(0, 11);
  f.Pass(absl::Seconds(2.1));
  // Sent before the process died: it follows the answer of a time when nobody else had asked.
  f.Beat(0, 10);
  f.Pass(absl::Milliseconds(100));
  const auto second = f.Register(0, 11);
  f.Pass(absl::Seconds(2.1));
  REQUIRE(second->has_value());
  REQUIRE((*second)->ok());
  CHECK((**second)->waiting_for().find("pid 17") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::chief
