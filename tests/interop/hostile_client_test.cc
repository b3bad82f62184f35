// What strangers with a stock gRPC client, or with none, do to a ps that trains.
#include <catch2/catch.hpp>
#include <string>

#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/interop/python.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

struct Attack {
  std::string name;
  json result;
  uint64_t growth;         // of the peak of a ps at most
  bool has_token = false;  // the job, not the stranger
};

TEST_CASE("a ps trains on in little memory while strangers misuse its port") {
  const Attack attack =
      GENERATE(Attack{"compressed", {{"UNIMPLEMENTED", 1}}, 64 * kMebibyte},
               Attack{"idle", {{"connection", "closed"}}, 64 * kMebibyte},
               // Seen 4 times a second. Without a limit it takes 16 GB.
               Attack{"unfinished", {{"connection", "closed"}}, 2048 * kMebibyte},
               Attack{"unfinished", {{"connection", "closed"}}, 2048 * kMebibyte, true});
  CAPTURE(attack.name, attack.has_token);
  Cluster cluster(1, 2);
  if (attack.has_token) cluster.UseToken();
  cluster.StartAll({.max_steps = 1'000'000});
  REQUIRE(cluster.WaitForStep(5, absl::Minutes(1)));
  ForgetPeak(cluster.ps(0));
  const uint64_t before = MemoryOf(cluster.ps(0)).peak;
  CHECK(RunPythonForJson("hostile_client.py", {cluster.spec().ps[0], attack.name}) ==
        attack.result);
  CHECK(MemoryOf(cluster.ps(0)).peak < before + attack.growth);
  const auto status = FetchStatus(cluster.spec().ps[0], absl::Seconds(10), cluster.credentials());
  REQUIRE(status.ok());
  INFO(cluster.Logs());
  CHECK(cluster.WaitForStep(status->global_step() + 5, absl::Minutes(1)));
}

}  // namespace
}  // namespace lockstep::test
