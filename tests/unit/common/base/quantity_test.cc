#include "common/base/quantity.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

TEST_CASE("numbers get commas between thousands") {
  CHECK(WithCommas(0) == "0");
  CHECK(WithCommas(999) == "999");
  CHECK(WithCommas(1000) == "1,000");
  CHECK(WithCommas(std::numeric_limits<uint64_t>::max()) == "18,446,744,073,709,551,615");
}

TEST_CASE("bytes get the largest unit that keeps a whole number in front") {
  CHECK(BytesText(1023) == "1023 B");
  CHECK(BytesText(1024) == "1.0 KiB");
  CHECK(BytesText(1536 << 10) == "1.5 MiB");
  CHECK(BytesText(uint64_t{3} << 50) == "3072.0 TiB");
}

TEST_CASE("durations read as clocks from a minute on, and unknown ones as a question mark") {
  CHECK(SecondsText(0.44) == "0.4 s");
  CHECK(SecondsText(9.96) == "10 s");
  CHECK(SecondsText(59.6) == "1:00");
  CHECK(SecondsText(185) == "3:05");
  CHECK(SecondsText(3723) == "1:02:03");
  CHECK(SecondsText(-1) == "?");
  CHECK(SecondsText(std::nan("")) == "?");
  CHECK(SecondsText(std::numeric_limits<double>::infinity()) == "?");
}

TEST_CASE("rates keep three digits") {
  CHECK(RateText(0.256) == "0.26");
  CHECK(RateText(12.34) == "12.3");
  CHECK(RateText(12345.6) == "12,346");
  CHECK(RateText(std::numeric_limits<double>::infinity()) == "?");
}

TEST_CASE("counts agree with their nouns") {
  CHECK(CountText(1, "thread") == "1 thread");
  CHECK(CountText(0, "thread") == "0 threads");
  CHECK(CountText(1200, "example") == "1,200 examples");
  CHECK(CountText(1, "ps is", "ps are") == "1 ps is");
  CHECK(CountText(2, "ps is", "ps are") == "2 ps are");
}

TEST_CASE("durations in sentences have a unit") {
  CHECK(DurationText(absl::Milliseconds(2013)) == "2.0 s");
  CHECK(DurationText(absl::Seconds(12)) == "12 s");
  CHECK(DurationText(absl::Milliseconds(59600)) == "60 s");
  CHECK(DurationText(absl::Minutes(2)) == "120 s");
  CHECK(DurationText(absl::Minutes(15)) == "15 min");
  CHECK(DurationText(absl::Minutes(210)) == "3.5 h");
  CHECK(DurationText(-absl::Seconds(1)) == "?");
  CHECK(DurationText(absl::InfiniteDuration()) == "?");
}

TEST_CASE("losses keep four decimals, of large ones four digits, and nan has no sign") {
  CHECK(LossText(0.12345) == "0.1235");
  CHECK(LossText(999999.5) == "999999.5000");
  CHECK(LossText(738577474387968.0) == "7.386e+14");
  CHECK(LossText(-std::nan("")) == "nan");
  CHECK(LossText(std::nan("")) == "nan");
  CHECK(LossText(-std::numeric_limits<double>::infinity()) == "-inf");
}

}  // namespace
}  // namespace lockstep
