// Two processes want to be one worker: the one that is there lives, or has died.
#include <catch2/catch.hpp>

#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;

// The newcomer's next registration has been answered so.
absl::StatusOr<RegisterTaskReply> AskAgain(Fixture* f) {
  const auto reply = f->Register(0, 11);
  if (!reply->has_value()) f->Pass(absl::Seconds(2.1));
  REQUIRE(reply->has_value());
  return **reply;
}

TEST_CASE("a second process of one index is told to wait, then refused") {
  Fixture f;
  f.Train();
  const auto beat = f.Beat(0, 10);
  f.clock.Advance(absl::Milliseconds(10));
  const auto first = f.Register(0, 11);
  f.Pass(absl::Seconds(1));
  f.Receive(10, beat);
  f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  REQUIRE(first->has_value());
  CHECK_FALSE((**first)->ready());
  CHECK((**first)->waiting_for().find("pid 17") != std::string::npos);
  CHECK_FALSE((**first)->has_id());
  CHECK(AskAgain(&f).status().code() == absl::StatusCode::kAlreadyExists);
}

TEST_CASE("a process that waits for the job to begin keeps its index") {
  Fixture f;
  const auto holder = f.Register(0, 10);
  f.Pass(absl::Seconds(1));
  f.Register(0, 11);
  f.Pass(absl::Seconds(1.1));
  f.Receive(10, holder);
  f.Register(0, 10);
  CHECK(AskAgain(&f).status().code() == absl::StatusCode::kAlreadyExists);
}

TEST_CASE("a heartbeat of a dead process that comes late does not turn its successor away") {
  Fixture f;
  f.Train();
  f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  f.Register(0, 11);
  f.Pass(absl::Seconds(2.1));
  // Sent before the process died: it names no reply of a time when the newcomer had asked.
  f.Beat(0, 10);
  f.Pass(absl::Milliseconds(100));
  CHECK(AskAgain(&f)->waiting_for().find("pid 17") != std::string::npos);
}

TEST_CASE("heartbeats of a dead process that come late together do not turn its successor away") {
  Fixture f;
  f.Train();
  f.Receive(10, f.Register(0, 10));
  f.Register(0, 11);
  f.clock.Advance(absl::Milliseconds(10));
  // Each of them, but the last, is answered because another one comes.
  for (int i = 0; i < 3; ++i) {
    f.Beat(0, 10);
    f.Pass(absl::Milliseconds(600));
  }
  CHECK(AskAgain(&f)->waiting_for().find("pid 17") != std::string::npos);
}

TEST_CASE("registrations of a dead process that come late do not turn its successor away") {
  Fixture f;
  f.Register(0, 10);
  f.Pass(absl::Seconds(1));
  f.Register(0, 11);
  f.Pass(absl::Seconds(1));
  f.Register(0, 10);
  f.Pass(absl::Seconds(1));
  f.Register(0, 10);
  CHECK(AskAgain(&f)->waiting_for().find("pid 17") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::chief
