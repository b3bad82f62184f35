#include "common/contact/silence_watch.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

constexpr absl::Duration kStart = absl::Seconds(100);

SilenceWatch OfChief() {
  return SilenceWatch({.peer = "the chief",
                       .told_after = absl::Seconds(5),
                       .period = absl::Seconds(1),
                       .reason = "it does not answer"},
                      kStart);
}

// Looks at each second after `begin` until `end`.
Lines LookUntil(SilenceWatch* watch, int begin, int end) {
  Lines lines;
  for (int second = begin + 1; second <= end; ++second) {
    const auto line = watch->CheckSilence(kStart + absl::Seconds(second));
    if (line.has_value()) lines.push_back(*line);
  }
  return lines;
}

TEST_CASE("a silent peer is named every five seconds, with the reason, and its return once") {
  SilenceWatch watch = OfChief();
  CHECK(LookUntil(&watch, 0, 9) == Lines{"no contact with the chief for 5 s: it does not answer"});
  watch.OnFailure("connection refused");
  CHECK(LookUntil(&watch, 9, 12) ==
        Lines{"no contact with the chief for 10 s: connection refused"});
  CHECK(watch.OnHeard(kStart + absl::Seconds(13)) == "contact with the chief again, after 13 s");
  CHECK_FALSE(watch.OnHeard(kStart + absl::Seconds(14)).has_value());
}

TEST_CASE("a silence that nobody was told of is over without a word, and the next is told anew") {
  SilenceWatch watch = OfChief();
  CHECK(LookUntil(&watch, 0, 4).empty());
  CHECK_FALSE(watch.OnHeard(kStart + absl::Seconds(4)).has_value());
  CHECK(LookUntil(&watch, 4, 9).size() == 1);
  CHECK(watch.OnHeard(kStart + absl::Seconds(9)).has_value());
  CHECK(LookUntil(&watch, 9, 13).empty());
  CHECK(LookUntil(&watch, 13, 14).size() == 1);
}

TEST_CASE("another peer that answers in place of a silent one is not called back") {
  SilenceWatch watch = OfChief();
  CHECK(LookUntil(&watch, 0, 5).size() == 1);
  watch.SetName("chief 1");
  CHECK_FALSE(watch.OnHeard(kStart + absl::Seconds(6)).has_value());
  CHECK(LookUntil(&watch, 6, 11) == Lines{"no contact with chief 1 for 5 s: it does not answer"});
  CHECK(watch.OnHeard(kStart + absl::Seconds(12)) == "contact with chief 1 again, after 6 s");
}

TEST_CASE("a process that stood still does not take its own absence for the peer's") {
  SilenceWatch watch = OfChief();
  CHECK(LookUntil(&watch, 0, 2).empty());
  CHECK(LookUntil(&watch, 39, 41).empty());  // three seconds count, and the one of the next look
  CHECK(LookUntil(&watch, 41, 42).size() == 1);
}

TEST_CASE("looks that are a little late add up to silence all the same") {
  SilenceWatch watch = OfChief();
  Lines lines;
  for (int look = 1; look <= 4; ++look) {
    const auto line = watch.CheckSilence(kStart + look * absl::Milliseconds(1500));
    if (line.has_value()) lines.push_back(*line);
  }
  CHECK(lines == Lines{"no contact with the chief for 6 s: it does not answer"});
}

}  // namespace
}  // namespace lockstep
