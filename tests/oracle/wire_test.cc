// A running ps, driven by a client that knows nothing but the .proto files.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deploy/cli/ports.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::oracle {
namespace {

using test::Binary;
using test::Ended;
using test::Process;

// The Python that `./lockstep test` makes; `arguments` begin with the program.
Ended RunPython(std::vector<std::string> arguments) {
  const char* python = std::getenv("LOCKSTEP_PYTHON");
  if (python == nullptr) {
    FAIL("LOCKSTEP_PYTHON is not set. Remedy: run ./lockstep test, which makes a Python");
  }
  arguments.insert(arguments.begin(), python);
  return test::RunToEnd(arguments, absl::Minutes(4), {"PYTHONDONTWRITEBYTECODE=1"});
}

TEST_CASE("a running ps answers the training and cluster scripts as TensorFlow did") {
  const Ended ended = RunPython({Binary("tests/oracle/replay_through_wire.py"), Binary("."),
                                 Binary("ps/ps"), Binary("tests/oracle/scripts")});
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Catch::EndsWith("\n118 passed, 0 failed\n"));
}

TEST_CASE("the example client fits its line") {
  const auto ports = deploy::PortReservation::Take(4);
  REQUIRE(ports.ok());
  const std::vector<std::string>& addresses = ports->addresses();
  const nlohmann::json spec = {{"ps", {addresses.at(0)}},
                               {"worker", {addresses.at(1), addresses.at(2)}},
                               {"chief", {addresses.at(3)}}};
  const test::TemporaryFolder folder;
  const std::string cluster = folder.Write("cluster.json", spec.dump());
  Process ps({Binary("ps/ps"), "--cluster=" + cluster, "--task_index=0"});
  const Ended ended =
      RunPython({Binary("deploy/examples/python_client/fit_line.py"), Binary("."), cluster});
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Catch::Contains("y = 3.0000 x + -1.0000"));
  CHECK(ps.Wait(absl::Seconds(20)) == 0);
}

}  // namespace
}  // namespace lockstep::oracle
