#include "tests/chaos/sign.h"

#include <catch2/catch.hpp>

namespace lockstep::test {
namespace {

TEST_CASE("another task names the one that is hit") {
  const Sign sign = SignOf({FaultKind::kKill, FaultTarget::kPs});
  CHECK(sign.log == Sign::Log::kOthers);
  CHECK(sign.text.empty());
}

TEST_CASE("each task of a pair names the other one") {
  const Fault cut = {FaultKind::kPairPartition, FaultTarget::kWorker, FaultTarget::kPs};
  CHECK(SignOf(cut).log == Sign::Log::kBoth);
  CHECK(SignOf(cut).text.empty());
}

TEST_CASE("of a full disk the name of the task tells nothing, which was killed before") {
  const Sign sign = SignOf({FaultKind::kFullDisk, FaultTarget::kPs});
  CHECK(sign.log == Sign::Log::kOthers);
  CHECK(sign.text == "No space left on device");
}

TEST_CASE("after the end of all tasks the chief says where it goes on") {
  const Sign sign = SignOf({FaultKind::kKill, FaultTarget::kAll});
  CHECK(sign.log == Sign::Log::kChiefs);
  CHECK(sign.text == "restored from ");
}

}  // namespace
}  // namespace lockstep::test
