#include "ps/service/caller_contacts.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "tests/support/manual_time.h"

namespace lockstep::ps {
namespace {

using Lines = std::vector<std::string>;

constexpr absl::Duration kLease = absl::Seconds(2);

struct Fixture {
  Fixture() { contacts.Start(&time); }
  ~Fixture() { contacts.Stop(); }

  void Ping(uint32_t worker, uint64_t incarnation = 1, absl::Duration lease = kLease) {
    contacts.OnPing({.job = 7,
                     .epoch = Epoch(1),
                     .worker = WorkerIndex(worker),
                     .incarnation = Incarnation(incarnation)},
                    lease);
  }
  void PingOfChief(uint32_t index, absl::Duration lease = kLease) {
    contacts.OnPing({CallerContacts::Server::kChief, index}, lease);
  }
  // In steps that the contacts look at.
  void Pass(absl::Duration time_passes) {
    for (absl::Duration passed; passed < time_passes; passed += absl::Milliseconds(250)) {
      time.Advance(absl::Milliseconds(250));
    }
  }

  test::ManualTime time;
  Lines lines;
  std::set<uint64_t> gone;  // incarnations that are no members
  CallerContacts contacts{
      &time,
      [this](const WorkerIdentity& worker) { return !gone.contains(worker.incarnation.value()); },
      [this](absl::string_view line) { lines.emplace_back(line); }};
};

TEST_CASE("a worker whose pings stop is named after its lease, others are not") {
  Fixture f;
  for (int i = 0; i < 10; ++i) {
    f.Ping(0);
    f.Ping(1);
    f.Pass(absl::Milliseconds(500));
  }
  CHECK(f.lines.empty());
  for (int i = 0; i < 3; ++i) {
    f.Ping(0);
    f.Pass(absl::Milliseconds(500));
  }
  CHECK(f.lines == Lines{"no contact with worker 1 for 2 s: none of its pings comes"});
  f.Ping(1);
  CHECK(f.lines.size() == 2);
  CHECK(f.lines.back() == "contact with worker 1 again, after 2 s");
  f.Pass(absl::Seconds(1));
  CHECK(f.lines.size() == 2);
}

TEST_CASE("of a worker that has left, or has a successor, nothing is said") {
  Fixture f;
  f.Ping(0, 1);
  f.Ping(1, 2);
  f.gone = {1, 2};
  f.Ping(1, 3);
  f.Pass(absl::Seconds(1));
  f.Ping(1, 3);
  f.Pass(absl::Milliseconds(1750));
  CHECK(f.lines.empty());
  f.Pass(absl::Milliseconds(250));
  CHECK(f.lines == Lines{"no contact with worker 1 for 2 s: none of its pings comes"});
}

TEST_CASE("a worker cannot ask for a line more often than once a second") {
  Fixture f;
  for (int i = 0; i < 20; ++i) {
    f.Ping(0, 1, absl::ZeroDuration());
    f.Pass(absl::Milliseconds(750));
  }
  CHECK(f.lines.empty());
}

TEST_CASE("a ps that was stopped does not take its own absence for the workers'") {
  Fixture f;
  f.Ping(0);
  f.time.Advance(absl::Seconds(30));
  f.Pass(absl::Milliseconds(1500));
  CHECK(f.lines.empty());
  f.Pass(absl::Milliseconds(500));
  CHECK(f.lines.size() == 1);
}

TEST_CASE("a chief and a ps that fall silent are named, and forgotten after a while") {
  Fixture f;
  f.PingOfChief(1);
  f.contacts.OnPing({CallerContacts::Server::kPs, 0}, kLease);
  f.Pass(kLease);
  CHECK(f.lines == Lines{"no contact with chief 1 for 2 s: none of its pings comes",
                         "no contact with ps 0 for 2 s: none of its pings comes"});
  f.Pass(absl::Minutes(2));
  CHECK(f.lines.size() == 6);  // after 2, 7 and 12 s
  f.PingOfChief(1);
  CHECK(f.lines.size() == 6);
}

TEST_CASE("a worker that stays silent is forgotten, too: it may call another ps now") {
  Fixture f;
  f.Ping(3);
  f.Pass(absl::Minutes(2));
  CHECK(f.lines.size() == 3);
}

TEST_CASE(
    "a chief with a long lease is named after that, and one with another lease after the new") {
  Fixture f;
  f.PingOfChief(0, absl::Seconds(30));
  f.Pass(absl::Milliseconds(29'750));
  CHECK(f.lines.empty());
  f.Pass(absl::Milliseconds(250));
  CHECK(f.lines.size() == 1);
  f.PingOfChief(0, absl::Seconds(4));
  f.lines.clear();
  f.Pass(absl::Seconds(4));
  CHECK(f.lines == Lines{"no contact with chief 0 for 4 s: none of its pings comes"});
}

TEST_CASE(
    "made-up indices take no more room than that of 64 servers, and a real ps is noted again") {
  Fixture f;
  for (uint32_t index = 0; index < 10 * CallerContacts::kMostServers; ++index) {
    f.PingOfChief(index);
  }
  f.Pass(absl::Seconds(1));
  f.contacts.OnPing({CallerContacts::Server::kPs, 1}, kLease);
  f.Pass(absl::Seconds(1));
  CHECK(f.lines.size() == CallerContacts::kMostServers - 1);
  f.Pass(absl::Seconds(1));
  CHECK(f.lines.back() == "no contact with ps 1 for 2 s: none of its pings comes");
}

}  // namespace
}  // namespace lockstep::ps
