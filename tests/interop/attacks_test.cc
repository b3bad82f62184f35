// What somebody without a role, a reader, or a worker that goes astray can do to a job that trains:
// one row for each attack, made with a stock gRPC client.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/integration/process_memory.h"
#include "tests/interop/python.h"

namespace lockstep::test {
namespace {

constexpr uint64_t kMostGrowth = uint64_t{128} << 20;  // of the peak of a ps, in bytes
constexpr int kForeverSteps = 1'000'000;

// What is OK is without effect: text that is cut or escaped, an answer with the newest values, a
// report that is nobody's.
const std::map<std::string, std::string> kExpected = {
    {"17 MiB", "RESOURCE_EXHAUSTED"},
    {"2,000 cancelled pulls", "NONE"},
    {"a cluster of 10 MiB", "FAILED_PRECONDITION"},
    {"a heartbeat of 1 MiB", "OK"},
    {"a host of 1 MiB", "INVALID_ARGUMENT"},
    {"a host with line feeds", "OK"},
    {"a million pieces", "INVALID_ARGUMENT"},
    {"a place without memory", "NOT_FOUND"},
    {"a result of no lease", "OK"},
    {"a shape of 2^62", "INVALID_ARGUMENT"},
    {"a size of 2^64 - 1", "INVALID_ARGUMENT"},
    {"a store of what nobody asked for", "INVALID_ARGUMENT"},
    {"a version below all", "OK"},
    {"an error of an older incarnation", "OK"},
    {"an error of another", "PERMISSION_DENIED"},
    {"an older incarnation", "ABORTED"},
    {"an unknown slot", "FAILED_PRECONDITION"},
    {"another job", "FAILED_PRECONDITION"},
    {"another shape", "INVALID_ARGUMENT"},
    {"bytes beyond the end", "INVALID_ARGUMENT"},
    {"compressed", "UNIMPLEMENTED"},
    {"in another's name", "PERMISSION_DENIED"},
    {"less payload than it says", "INVALID_ARGUMENT"},
    {"many results", "INVALID_ARGUMENT"},
    {"no message", "INVALID_ARGUMENT"},
    {"no payload", "INVALID_ARGUMENT"},
    {"no such dtype", "INVALID_ARGUMENT"},
    {"no such variable", "INVALID_ARGUMENT"},
    {"no such worker", "PERMISSION_DENIED"},
    {"nobody: CreateVariables", "UNAUTHENTICATED"},
    {"nobody: Finish", "UNAUTHENTICATED"},
    {"nobody: GetStatus", "UNAUTHENTICATED"},
    {"nobody: GetView", "UNAUTHENTICATED"},
    {"nobody: Grant", "UNAUTHENTICATED"},
    {"nobody: Push", "UNAUTHENTICATED"},
    {"nobody: ReportError", "UNAUTHENTICATED"},
    {"nobody: Save", "UNAUTHENTICATED"},
    {"nobody: Send", "UNAUTHENTICATED"},
    {"nobody: SetView", "UNAUTHENTICATED"},
    {"push_seq 0", "INVALID_ARGUMENT"},
    {"reader: Pull", "PERMISSION_DENIED"},
    {"reader: SetView", "PERMISSION_DENIED"},
    {"rows of a dense variable", "INVALID_ARGUMENT"},
    {"rows that are not there", "INVALID_ARGUMENT"},
    {"sums for a group that is none", "FAILED_PRECONDITION"},
    {"the last dequeue_seq", "ABORTED"},
    {"the last push_seq", "INVALID_ARGUMENT"},
    {"worker: Finish", "PERMISSION_DENIED"},
    {"worker: Save", "PERMISSION_DENIED"},
};

TEST_CASE("a job trains on while a stranger, a reader and one of its workers misuse its ports") {
  Cluster cluster(1, 3);
  const std::string tls = cluster.UseTls();
  // Of the three workers two are enough; the attacker is the third.
  cluster.StartAll({.max_steps = kForeverSteps, .sync = "replicas_to_aggregate: 2"},
                   {"--lease=60"});
  cluster.worker(2).Signal(SIGKILL);
  REQUIRE(cluster.WaitForStep(5, absl::Minutes(1)));
  ForgetPeak(cluster.ps(0));
  const uint64_t before = MemoryOf(cluster.ps(0)).peak;
  const std::map<std::string, std::string> seen =
      RunPythonForJson("attacks.py", {SourceRoot(), tls, cluster.spec().ps[0], cluster.spec().chief,
                                      cluster.spec().workers[0], cluster.spec_path()});
  INFO(cluster.Logs());
  REQUIRE(seen.size() == kExpected.size());
  for (const auto& [attack, code] : kExpected) {
    INFO(attack);
    CHECK(seen.at(attack) == code);
  }
  CHECK(MemoryOf(cluster.ps(0)).peak < before + kMostGrowth);
  // A line of its own in the log would look like the chief's.
  CHECK_THAT(cluster.chief().Output(), !Catch::Matchers::Contains("\n2026-01-01T00:00:00"));
  const auto status = FetchStatus(cluster.spec().chief, absl::Seconds(10), cluster.credentials());
  REQUIRE(status.ok());
  CHECK(cluster.WaitForStep(status->global_step() + 5, absl::Minutes(1)));
}

}  // namespace
}  // namespace lockstep::test
