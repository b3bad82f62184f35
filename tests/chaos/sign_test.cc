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

TEST_CASE("of a rolling restart a chief says that a worker has left") {
  const Sign sign = SignOf({FaultKind::kRollingRestart, FaultTarget::kAll});
  CHECK(sign.log == Sign::Log::kChiefs);
  CHECK(sign.text == "has left: it was told to stop");
}

TEST_CASE("a task that is short of descriptors, or refuses calls, says so itself") {
  const Sign few = SignOf({FaultKind::kFewDescriptors, FaultTarget::kPs});
  CHECK(few.log == Sign::Log::kOwn);
  CHECK(few.text == "descriptors run out");
  const Sign refused = SignOf({FaultKind::kWrongToken, FaultTarget::kChief});
  CHECK(refused.log == Sign::Log::kOwn);
  CHECK(refused.text == "refused a call: ");
}

TEST_CASE("nobody logs connections that say nothing, or garbage") {
  for (const FaultKind kind : {FaultKind::kIdleConnections, FaultKind::kGarbage}) {
    CHECK(SignOf({kind, FaultTarget::kPs}).log == Sign::Log::kNobodies);
  }
}

}  // namespace
}  // namespace lockstep::test
