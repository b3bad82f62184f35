// The protocol with as many workers as no test starts processes.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/laws.h"

namespace lockstep::sim {
namespace {

TEST_CASE("a thousand workers train by the laws, backups among them") {
  REQUIRE(log::Init("simulation", "error").ok());
  for (const TokenPolicy policy : {PER_REPLICA, FIFO}) {
    SimOptions options;
    options.seed = 1000;
    options.token_policy = policy;
    options.ps = 4;
    options.workers = 1000;
    options.aggregate = 960;
    options.steps = 3;
    options.variables = {2, 1, 1, 1};
    SimCluster cluster(options);
    CHECK(RunAndJudge(&cluster) == "");
  }
}

}  // namespace
}  // namespace lockstep::sim
