#include "deploy/cli/supervisor.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

using test::TemporaryFolder;

// A shell with these commands, in the folder.
Task TaskOf(Role role, const TemporaryFolder& folder, const std::string& script) {
  const std::string name = TaskName(role, 0);
  return {.role = role,
          .command = {.name = name,
                      .arguments = {"/bin/sh", "-c", "cd " + folder.path() + "\n" + script},
                      .log_path = folder.Path(name)}};
}

TEST_CASE("a worker's error leaves the chief time to save, and the others no more than before") {
  const TemporaryFolder folder;
  const Supervisor::SignalBlock block;
  Console console;
  // Longer than what a process without anything to save is given.
  const std::string saves =
      "trap 'sleep 0.5; echo saved; exit 65' TERM\n"
      "touch ready\nwhile :; do sleep 0.05; done\n";
  Supervisor supervisor(
      {TaskOf(Role::kChief, folder, saves),
       TaskOf(Role::kPs, folder, "trap '' TERM\nwhile :; do sleep 1; done\n"),
       TaskOf(Role::kWorker, folder, "until [ -e ready ]; do sleep 0.05; done\nexit 65\n")},
      {}, &console, {.stop = absl::Milliseconds(200), .save = absl::InfiniteDuration()});
  REQUIRE(supervisor.StartAll().ok());
  CHECK(supervisor.Run([] {}, [] { return true; }) == 65);
  CHECK_THAT(folder.Read("chief"), Catch::Matchers::EndsWith("saved\n"));
}

}  // namespace
}  // namespace lockstep::deploy
