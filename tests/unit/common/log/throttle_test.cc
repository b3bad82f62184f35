#include "common/log/throttle.h"

#include <catch2/catch.hpp>

namespace lockstep::log {
namespace {

TEST_CASE("a flood of lines becomes one line a second that counts the rest") {
  Throttle throttle;
  absl::Duration now = absl::Seconds(1000);
  int lines = 0;
  for (int i = 0; i < 1000; ++i) lines += throttle.Admit("refused", now).has_value();
  CHECK(lines == 10);
  now += absl::Milliseconds(999);
  CHECK_FALSE(throttle.Admit("refused", now).has_value());
  now += absl::Milliseconds(1);
  CHECK(throttle.Admit("refused", now) == "refused (991 such lines left out)");
  CHECK_FALSE(throttle.Admit("refused", now).has_value());
}

TEST_CASE("as many lines pass at once as are expected, and one a second after them") {
  Throttle throttle(/*burst=*/100);
  int lines = 0;
  for (int i = 0; i < 1000; ++i) lines += throttle.Admit("came", absl::Hours(1)).has_value();
  CHECK(lines == 100);
  for (int i = 0; i < 1000; ++i) lines += throttle.Admit("came", absl::Hours(2)).has_value();
  CHECK(lines == 200);
}

TEST_CASE("after a pause lines pass again, and one that follows no others counts none") {
  Throttle throttle;
  CHECK(throttle.Admit("a", absl::ZeroDuration()) == "a");
  for (int i = 0; i < 20; ++i) throttle.Admit("b", absl::ZeroDuration());
  CHECK(throttle.Admit("c", absl::Hours(1)) == "c (11 such lines left out)");
  CHECK(throttle.Admit("d", absl::Hours(1)) == "d");
}

}  // namespace
}  // namespace lockstep::log
