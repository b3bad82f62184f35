#include "common/contact/ps_contacts.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/manual_time.h"

namespace lockstep {
namespace {

class RefusedPing final : public PeerPing {
 public:
  void Start(absl::Duration /*deadline*/, StatusCallback done) override {
    done(absl::UnavailableError("connection refused"));
  }
};

TEST_CASE("a ps that moves while the job runs is named though it has answered no ping") {
  test::ManualTime time;
  std::vector<std::string> lines;
  PsContacts contacts({.lease = absl::Seconds(2),
                       .timer = &time,
                       .clock = &time,
                       .log = [&](absl::string_view line) { lines.emplace_back(line); },
                       .waits_for_first = true},
                      [](const std::string& /*name*/, const std::string& /*address*/) {
                        return std::make_unique<RefusedPing>();
                      });
  const auto pass = [&](absl::Duration span) {
    constexpr absl::Duration kTick = absl::Milliseconds(250);
    for (; span > absl::ZeroDuration(); span -= kTick) time.Advance(kTick);
  };
  contacts.SetPlace(0, "ps 0", "here");
  pass(absl::Seconds(10));
  CHECK(lines.empty());
  contacts.CountSilence();
  contacts.SetPlace(0, "ps 0", "there");
  contacts.SetPlace(1, "ps 1", "elsewhere");
  pass(absl::Seconds(2));
  CHECK(lines == std::vector<std::string>{"no contact with ps 0 for 2 s: connection refused",
                                          "no contact with ps 1 for 2 s: connection refused"});
}

}  // namespace
}  // namespace lockstep
