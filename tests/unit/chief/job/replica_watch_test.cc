#include "chief/job/replica_watch.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

struct Fixture {
  Membership membership{{"a:1", "b:2"}, absl::Seconds(5), absl::ZeroDuration()};
  ReplicaWatch watch{GlobalStep(30), &membership};

  void Register(uint32_t worker, uint64_t incarnation) {
    REQUIRE(membership
                .Register(WorkerIndex(worker), Incarnation(incarnation), "host", 1,
                          absl::ZeroDuration())
                .ok());
  }
  void Leave(uint32_t worker, uint64_t incarnation) {
    REQUIRE(membership.Leave(WorkerIndex(worker), Incarnation(incarnation), absl::Seconds(1)).ok());
  }
};

TEST_CASE("until the first step is over, whoever goes can be replaced") {
  Fixture f;
  f.Register(0, 10);
  f.Register(1, 11);
  CHECK(f.watch.Check(GlobalStep(30)).ok());
  f.Leave(1, 11);
  CHECK(f.watch.Check(GlobalStep(30)).ok());
  f.Register(1, 21);
  CHECK(f.watch.Check(GlobalStep(30)).ok());
  CHECK(f.watch.Check(GlobalStep(31)).ok());
}

TEST_CASE("afterwards a worker that goes takes its variables along, also where another one comes") {
  Fixture f;
  f.Register(0, 10);
  f.Register(1, 11);
  CHECK(f.watch.Check(GlobalStep(30)).ok());
  CHECK(f.watch.Check(GlobalStep(35)).ok());
  f.Leave(1, 11);
  const bool has_successor = GENERATE(false, true);
  if (has_successor) f.Register(1, 21);
  const absl::Status lost = f.watch.Check(GlobalStep(36));
  CHECK(ExitCodeFor(lost) == ExitCode::kPeersLost);
  CHECK_THAT(std::string(lost.message()),
             Contains("worker 1 (b:2) is lost") && Contains("step 36") && Contains("--resume"));
}

}  // namespace
}  // namespace lockstep::chief
