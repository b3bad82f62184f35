// When the entry script builds, against stand-ins for the package manager and Bazel.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/integration/script_tree.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

TEST_CASE("the tools for a running job are built once, and never under that job") {
  const Tree tree;
  tree.folder().Write("lists", "");
  CHECK_THAT(tree.Run({"status", "h:1"}).output, EndsWith("deploy/cli/status h:1\n"));
  CHECK(tree.Calls().back() == "bazel build");
  tree.folder().Write("calls", "");
  tree.folder().Write("common/base/new.cc", "");
  CHECK_THAT(tree.Run({"status", "h:1"}).output, EndsWith("deploy/cli/status h:1\n"));
  CHECK_THAT(tree.Run({"stop", "h:1"}).output, EndsWith("deploy/cli/stop h:1\n"));
  CHECK(tree.Calls().empty());
}

TEST_CASE("a changed source is built again") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.InstallAll();
  tree.folder().Write("common/base/new.cc", "");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls() == std::vector<std::string>{"bazel build"});
}

TEST_CASE("what a job writes beside the examples is not built") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.InstallAll();
  tree.folder().Write("deploy/examples/digits/checkpoints/LATEST", "ckpt-600\n");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls().empty());
}

TEST_CASE("a command waits while another one builds, and takes what that has built") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.InstallAll();
  tree.folder().Write("common/base/new.cc", "");
  const std::string gate = tree.folder().Path("gate");
  REQUIRE(mkfifo(gate.c_str(), 0600) == 0);
  Process first(tree.Command({"build"}), tree.Environment());
  std::ofstream opened(gate);  // waits for its reader
  Process second(tree.Command({"demo"}), tree.Environment());
  REQUIRE(second.WaitForOutput("another command builds here", absl::Seconds(20)));
  std::filesystem::remove(gate);
  opened << std::endl;
  CHECK(first.Wait(absl::Seconds(20)) == 0);
  CHECK(second.Wait(absl::Seconds(20)) == 0);
  CHECK_THAT(second.Output(), Contains("ran ") && Contains("deploy/cli/demo"));
  CHECK(tree.Calls() == std::vector<std::string>{"bazel build"});
}

// `program` reads what Bazel has made for `command`: another command may not build meanwhile.
void CheckReadsUnderLock(const std::vector<std::string>& command, const std::string& program) {
  CAPTURE(program);
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "//a:b_test  PASSED in 0.1s\n");
  tree.InstallAll();
  tree.folder().Write("common/base/new.cc", "");
  tree.Fake(program,
            "[ ! -p \"$FAKE/reading\" ] || read -r _ <\"$FAKE/reading\"\n"
            "exec /usr/bin/" +
                program + " \"$@\"\n");
  const std::string gate = tree.folder().Path("gate"), reading = tree.folder().Path("reading");
  REQUIRE(mkfifo(gate.c_str(), 0600) == 0);
  Process script(tree.Command(command), tree.Environment());
  std::ofstream bazel(gate);  // waits for its reader
  REQUIRE(mkfifo(reading.c_str(), 0600) == 0);
  std::filesystem::remove(gate);
  bazel << std::endl;
  std::ofstream reader(reading);
  const int lock = open(tree.folder().Path(".cache/lockstep/build.lock").c_str(), O_RDWR);
  REQUIRE(lock >= 0);
  CHECK(flock(lock, LOCK_EX | LOCK_NB) != 0);
  close(lock);
  std::filesystem::remove(reading);
  reader << std::endl;
  CHECK(script.Wait(absl::Seconds(20)) == 0);
}

TEST_CASE("what a build has made is read before another command may build") {
  CheckReadsUnderLock({"build"}, "stat");
  CheckReadsUnderLock({"test", "//a:b_test"}, "find");
  CheckReadsUnderLock({"compile_commands"}, "awk");
}

TEST_CASE("a failing build shows the compiler's error and not its progress") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("broken", "");
  const Ended ended = tree.Run({"build"});
  CHECK(ended.exit_code == 70);
  CHECK_THAT(ended.output, Contains("a.cc:7:1: error") && !Contains("[3 / 9]"));
}

TEST_CASE("Ctrl-C in a build ends it, stops the server and exits 130") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("slow", "");
  Process script(tree.Command({"demo"}), tree.Environment());
  REQUIRE(script.WaitForOutput("1 of 9", absl::Seconds(20)));
  script.Signal(SIGINT);
  CHECK(script.Wait(absl::Seconds(10)) == 130);
  CHECK(ProcessesWith(tree.folder().path()).empty());
}

}  // namespace
}  // namespace lockstep::test
