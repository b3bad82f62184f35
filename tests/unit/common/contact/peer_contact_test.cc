#include "common/contact/peer_contact.h"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "tests/support/manual_time.h"

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

constexpr absl::Duration kLease = absl::Seconds(2);
constexpr absl::Duration kTick = absl::Milliseconds(500);

// Answers when the test says so. Of a ping that is destroyed calls end with CANCELLED, as those of
// a channel do.
class FakePing final : public PeerPing {
 public:
  struct Peer {
    std::optional<absl::Status> answers_at_once;
    StatusCallback asked;
    int calls = 0;
    int pings = 0;  // that exist
  };
  explicit FakePing(Peer* peer, absl::Duration deadline = kLease / 2)
      : peer_(peer), deadline_(deadline) {
    ++peer_->pings;
  }
  ~FakePing() override {
    --peer_->pings;
    if (peer_->asked) peer_->asked(absl::CancelledError("the client ends"));
  }

  void Start(absl::Duration deadline, StatusCallback done) override {
    CHECK(deadline == deadline_);
    REQUIRE_FALSE(peer_->asked);
    ++peer_->calls;
    if (peer_->answers_at_once.has_value()) return done(*peer_->answers_at_once);
    peer_->asked = std::move(done);
  }

 private:
  Peer* const peer_;
  const absl::Duration deadline_;
};

struct Fixture {
  explicit Fixture(std::optional<absl::Status> answer, bool waits_for_first = false)
      : peer{.answers_at_once = std::move(answer)} {
    contact.emplace(
        PeerContactOptions{.lease = kLease,
                           .timer = &time,
                           .clock = &time,
                           .log = [this](absl::string_view line) { lines.emplace_back(line); },
                           .waits_for_first = waits_for_first},
        "ps 1", std::make_unique<FakePing>(&peer));
  }
  void Ticks(int count) {
    // The contact looks twice as often as it asks.
    for (int i = 0; i < 2 * count; ++i) time.Advance(kTick / 2);
  }

  test::ManualTime time;
  Lines lines;
  FakePing::Peer peer;
  std::optional<PeerContact> contact;
};

TEST_CASE("a peer is asked four times in a lease, and nothing is said while it answers") {
  Fixture f(absl::OkStatus());
  f.Ticks(40);
  CHECK(f.peer.calls == 41);
  CHECK(f.lines.empty());
}

TEST_CASE("each answer that comes from the peer itself counts as contact") {
  const absl::Status answer =
      GENERATE(absl::AbortedError("another epoch"), absl::PermissionDeniedError("not you"),
               absl::ResourceExhaustedError("too many calls"));
  Fixture f(answer);
  f.Ticks(40);
  CHECK(f.lines.empty());
}

TEST_CASE("a peer that refuses connections is named after a lease, with the reason") {
  Fixture f(absl::OkStatus());
  f.Ticks(4);
  f.peer.answers_at_once = absl::UnavailableError("connection refused");
  f.Ticks(3);
  CHECK(f.lines.empty());
  f.Ticks(1);
  CHECK(f.lines == Lines{"no contact with ps 1 for 2 s: connection refused"});
  f.peer.answers_at_once = absl::OkStatus();
  f.Ticks(3);
  CHECK(f.lines == Lines{"no contact with ps 1 for 2 s: connection refused",
                         "contact with ps 1 again, after 2 s"});
}

TEST_CASE("that a peer is reached is told once, with its first answer") {
  test::ManualTime time;
  FakePing::Peer peer{.answers_at_once = absl::UnavailableError("connection refused")};
  int reached = 0;
  PeerContact contact({.lease = kLease,
                       .timer = &time,
                       .clock = &time,
                       .log = [](absl::string_view) {},
                       .on_reached = [&reached] { ++reached; }},
                      "ps 1", std::make_unique<FakePing>(&peer));
  time.Advance(kTick);
  CHECK(reached == 0);
  peer.answers_at_once = absl::OkStatus();
  for (int i = 0; i < 10; ++i) time.Advance(kTick);
  CHECK(reached == 1);
}

TEST_CASE("a peer that never answers is named, and asked once at a time") {
  Fixture f(std::nullopt);
  f.Ticks(4);
  CHECK(f.peer.calls == 1);
  CHECK(f.lines == Lines{"no contact with ps 1 for 2 s: it does not answer"});
  std::exchange(f.peer.asked, nullptr)(absl::DeadlineExceededError("no answer within 1 s"));
  f.Ticks(1);
  CHECK(f.peer.calls == 2);
  f.Ticks(9);
  REQUIRE(f.lines.size() == 2);
  CHECK(f.lines[1] == "no contact with ps 1 for 7 s: no answer within 1 s");
}

TEST_CASE("a call that ends with its contact is no sign of life") {
  const bool is_muted_first = GENERATE(false, true);
  Fixture f(std::nullopt);
  f.Ticks(4);
  REQUIRE(f.lines.size() == 1);
  if (is_muted_first) f.contact->Mute();
  f.contact.reset();
  CHECK(f.lines.size() == 1);
}

TEST_CASE("a process that was stopped does not take its own absence for the peer's") {
  Fixture f(absl::OkStatus());
  f.Ticks(2);
  f.peer.answers_at_once.reset();
  f.time.Advance(absl::Seconds(30));
  CHECK(f.lines.empty());
  f.Ticks(3);
  CHECK(f.lines.empty());
  f.Ticks(1);
  CHECK(f.lines.size() == 1);
}

TEST_CASE("after a move late answers of the peer before are ignored") {
  Fixture f(std::nullopt);
  f.Ticks(4);
  REQUIRE(f.lines.size() == 1);
  FakePing::Peer other{.answers_at_once = absl::OkStatus()};
  f.contact->MoveTo("ps 2", std::make_unique<FakePing>(&other));
  f.Ticks(1);
  CHECK(other.calls == 1);
  std::exchange(f.peer.asked, nullptr)(absl::UnavailableError("connection refused"));
  f.Ticks(20);
  CHECK(f.lines.size() == 1);
  other.answers_at_once = absl::UnavailableError("reset");
  f.Ticks(4);
  REQUIRE(f.lines.size() == 2);
  CHECK(f.lines[1] == "no contact with ps 2 for 2 s: reset");
  f.contact.reset();
}

TEST_CASE("a contact that moves often keeps the last ping, and those with a call under way") {
  Fixture f(std::nullopt);  // asked once, and does not answer yet
  FakePing::Peer other{.answers_at_once = absl::OkStatus()};
  for (int moves = 0; moves < 100; ++moves) {
    f.contact->MoveTo("ps 2", std::make_unique<FakePing>(&other));
    f.Ticks(1);
    CHECK(other.pings == 1);
  }
  CHECK(f.peer.pings == 1);
  std::exchange(f.peer.asked, nullptr)(absl::UnavailableError("connection refused"));
  f.Ticks(1);
  CHECK(f.peer.pings == 0);
  CHECK(f.lines.empty());
  // Between two ticks, too.
  for (int moves = 0; moves < 100; ++moves) {
    f.contact->MoveTo("ps 2", std::make_unique<FakePing>(&other));
  }
  f.Ticks(1);
  CHECK(other.pings == 1);
  f.contact.reset();
  CHECK(other.pings == 0);
}

TEST_CASE("a peer that others wait for is named once it has been reached") {
  Fixture f(absl::UnavailableError("connection refused"), /*waits_for_first=*/true);
  f.Ticks(40);
  CHECK(f.lines.empty());
  f.peer.answers_at_once = absl::OkStatus();
  f.Ticks(1);
  f.peer.answers_at_once = absl::UnavailableError("reset");
  f.Ticks(4);
  CHECK(f.lines == Lines{"no contact with ps 1 for 2 s: reset"});
}

TEST_CASE("a peer that other calls have reached is named though it has answered no ping") {
  Fixture f(absl::UnavailableError("connection refused"), /*waits_for_first=*/true);
  f.Ticks(40);
  f.contact->CountSilence();
  f.Ticks(3);
  CHECK(f.lines.empty());
  f.contact->CountSilence();
  f.Ticks(1);
  CHECK(f.lines == Lines{"no contact with ps 1 for 2 s: connection refused"});
}

TEST_CASE("with a long lease, too, silence is named a quarter of a second later at most") {
  test::ManualTime time;
  Lines lines;
  FakePing::Peer peer{.answers_at_once = absl::OkStatus()};
  const PeerContact contact({.lease = absl::Seconds(60),
                             .timer = &time,
                             .clock = &time,
                             .log = [&](absl::string_view line) { lines.emplace_back(line); }},
                            "ps 1", std::make_unique<FakePing>(&peer, absl::Seconds(30)));
  peer.answers_at_once = absl::UnavailableError("reset");
  for (int i = 0; i < 4 * 60 - 1; ++i) time.Advance(absl::Milliseconds(250));
  CHECK(lines.empty());
  time.Advance(absl::Milliseconds(250));
  CHECK(lines == Lines{"no contact with ps 1 for 60 s: reset"});
  CHECK(peer.calls == 5);
}

TEST_CASE("a contact that is muted asks and logs no more") {
  Fixture f(absl::UnavailableError("connection refused"));
  f.contact->Mute();
  f.Ticks(20);
  CHECK(f.peer.calls == 1);
  CHECK(f.lines.empty());
}

TEST_CASE("a contact ends while a call is under way, and later ticks do nothing") {
  Fixture f(std::nullopt);
  f.contact.reset();
  CHECK(f.peer.calls == 1);
  f.Ticks(10);
  CHECK(f.peer.calls == 1);
  CHECK(f.lines.empty());
}

}  // namespace
}  // namespace lockstep
