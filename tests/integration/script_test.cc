// The entry script against stand-ins for the package manager and Bazel.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "tests/integration/script_tree.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

TEST_CASE("the script installs what is missing and builds, and a second run does neither") {
  const Tree tree;
  tree.folder().Write("lists", "");
  const Ended first = tree.Run({"build"});
  CHECK(first.exit_code == 0);
  CHECK_THAT(first.output, Contains("missing Debian packages: bazel-bootstrap"));
  CHECK_THAT(first.output, Contains("bazel-bin/ps/ps\n"));
  const auto calls = tree.Calls();
  REQUIRE(calls.size() == 2);
  CHECK_THAT(calls[0], Contains("--no-install-recommends") && Contains(" g++ "));
  CHECK(calls[1] == "bazel build");
  CHECK(ProcessesWith(tree.folder().path()).empty());  // Bazel's server neither

  tree.folder().Write("calls", "");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls().empty());
}

TEST_CASE("each command of the script says what it takes, and does nothing else") {
  const Tree tree;
  for (const std::string command :
       {"bench", "build", "bundle", "chaos", "check", "compile_commands", "fuzz", "test"}) {
    for (const std::string option : {"--help", "-h"}) {
      const Ended help = tree.Run({command, option});
      CHECK(help.exit_code == 0);
      CHECK_THAT(help.output, StartsWith("./lockstep " + command + " "));
    }
  }
  // Of all that the list names.
  std::istringstream list(tree.Run({"help"}).output);
  int commands = 0;
  for (std::string line; std::getline(list, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "  ./lockstep ")) continue;
    const std::string command(rest.substr(0, rest.find(' ')));
    CAPTURE(command);
    CHECK(tree.Run({command, "--help"}).exit_code == 0);
    ++commands;
  }
  CHECK(commands > 15);
  CHECK(tree.Calls().empty());
}

TEST_CASE("what a program takes is told before it is built, and by itself afterwards") {
  const Tree tree;
  for (const std::string command : {"up", "demo", "status", "stop", "token", "certificates"}) {
    CAPTURE(command);
    const Ended help = tree.Run({command, "--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.output, StartsWith("lockstep " + command + " ") && !Contains("\\") &&
                                Contains(".\n\nThe same command lists the flags once "));
  }
  for (const std::string command : {"predict", "evaluate"}) {
    CHECK_THAT(tree.Run({command, "-h"}).output, StartsWith("predict|evaluate --checkpoint=DIR"));
  }
  CHECK(tree.Calls().empty());

  tree.folder().Write("lists", "");
  tree.InstallAll();
  tree.folder().Write("common/base/new.cc", "");  // not built for a word of help
  CHECK_THAT(tree.Run({"up", "--help"}).output, EndsWith("bazel-bin/deploy/cli/up --help\n"));
  CHECK_THAT(tree.Run({"predict", "-h"}).output, EndsWith("worker/predict predict -h\n"));
  CHECK(tree.Calls().empty());
}

TEST_CASE("the job file of up stays its first word") {
  const Tree tree;
  tree.folder().Write("lists", "");
  CHECK_THAT(tree.Run({"up", "job.textproto", "--resume"}).output,
             Contains("deploy/cli/up job.textproto --resume --bin_dir="));
}

TEST_CASE("package lists are fetched when a package is not known, and only then") {
  const Tree tree;
  CHECK(tree.Run({"build"}).exit_code == 0);
  const auto calls = tree.Calls();
  REQUIRE(calls.size() == 4);
  CHECK_THAT(calls[0], Contains(" install "));
  CHECK_THAT(calls[1], EndsWith(" update"));
  CHECK_THAT(calls[2], Contains(" install "));
}

TEST_CASE("without root the script prints the one line to run, and stops") {
  const Tree tree;
  tree.Fake("id", "echo 1000");
  tree.Fake("sudo", "exit 1");
  const Ended ended = tree.Run({"demo"});
  CHECK(ended.exit_code == 77);
  CHECK_THAT(ended.output,
             Contains("\napt-get install -y --no-install-recommends bazel-bootstrap catch2 g++ "));
  CHECK(tree.Calls().empty());
}

TEST_CASE("who cannot write what another user has built is told so before a build") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.InstallAll();
  std::filesystem::permissions(tree.folder().Path(".cache/lockstep/build.lock"),
                               std::filesystem::perms(0444));
  auto command = tree.Command({"build"});
  // Root's right to write what it may not.
  if (geteuid() == 0)
    command.insert(command.begin(), {"/usr/bin/setpriv", "--bounding-set=-dac_override"});
  // What is built may be used.
  CHECK(RunToEnd(command, absl::Seconds(30), tree.Environment()).exit_code == 0);
  tree.folder().Write("common/base/new.cc", "");
  const Ended ended = RunToEnd(command, absl::Seconds(30), tree.Environment());
  CHECK(ended.exit_code == 73);
  CHECK_THAT(ended.output, Contains(".cache/lockstep/build.lock: this user cannot write it") &&
                               Contains("Remedy: ") && Contains("chown -R "));
}

TEST_CASE("sudo that asks no password is used") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.Fake("id", "echo 1000");
  tree.Fake("sudo", "shift; echo \"sudo $1\" >>\"$FAKE/calls\"; exec \"$@\"");
  CHECK(tree.Run({"build"}).exit_code == 0);
  const auto calls = tree.Calls();
  CHECK(std::count(calls.begin(), calls.end(), "sudo env") == 1);
}

TEST_CASE("the fashion demo installs its data set, the digits demo does not") {
  const Tree tree;
  tree.folder().Write("lists", "");
  const Ended digits = tree.Run({"demo"});
  CHECK_THAT(digits.output, Contains("deploy/cli/demo --bin_dir=") && !Contains("fashion-mnist"));
  const Ended fashion = tree.Run({"demo", "--dataset", "fashion"});
  CHECK_THAT(fashion.output, Contains("missing Debian packages: dataset-fashion-mnist\n"));
  CHECK_THAT(fashion.output, Contains("--dataset fashion"));
}

TEST_CASE("a failing installation is shown with its reason") {
  const Tree tree;
  tree.Fake("apt-get", "echo 'E: Unable to locate package g++'; exit 100");
  const Ended unknown = tree.Run({"build"});
  CHECK(unknown.exit_code == 78);
  CHECK_THAT(unknown.output, Contains("Unable to locate package g++") && Contains("Remedy"));
  tree.Fake("apt-get", "echo 'E: Could not resolve host'; exit 100");
  CHECK(tree.Run({"build"}).exit_code == 138);
}

TEST_CASE("the closing line of the tests adds up the cases of all binaries") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("bazel-testlogs/a/x_test/test.log", "All passed\n12 passed, 0 failed\n");
  tree.folder().Write("bazel-testlogs/a/y_test/test.log", "3 passed, 2 failed\n");
  tree.folder().Write("bazel-testlogs/a/crash_test/test.log", "boom\n");
  tree.folder().Write("bazel-testlogs/a/leak_test/test.log", "5 passed, 0 failed\nleak\n");
  tree.folder().Write("bazel-testlogs/a/shards_test/shard_1_of_2/test.log", "1 passed, 0 failed\n");
  tree.folder().Write("bazel-testlogs/a/shards_test/shard_2_of_2/test.log", "2 passed, 0 failed\n");
  tree.folder().Write("bazel-testlogs/a/old_test/test.log", "50 passed, 0 failed\n");
  const std::string good =
      "//a:x_test            (cached) PASSED in 0.1s\n"
      "//a:shards_test                PASSED in 0.2s\n"
      "//a:script_test                PASSED in 0.2s\n";
  tree.folder().Write("results", good);
  const Ended passed = tree.Run({"test"});
  CHECK(passed.exit_code == 0);
  CHECK_THAT(passed.output, EndsWith("\n16 passed, 0 failed\n"));

  tree.folder().Write("results", good +
                                     "//a:y_test                FAILED in 0.1s\n"
                                     "//a:crash_test            TIMEOUT in 60.0s\n"
                                     "//a:leak_test             FAILED in 0.1s\n"
                                     "//a:old_test              FAILED TO BUILD\n");
  tree.folder().Write("code", "3");
  const Ended failed = tree.Run({"test"});
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.output, EndsWith("\n24 passed, 5 failed\n"));
}

TEST_CASE("cases that wait for a GPU are counted, and run where there is one") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "//a:script_test                PASSED in 0.2s\n");
  tree.folder().Write("gpu_tests", "//a:x_gpu_test\n//a:y_gpu_test\n");
  for (const std::string name : {"x", "y"}) {
    const std::string path = tree.folder().Write(
        "bazel-bin/a/" + name + "_gpu_test",
        "#!/bin/sh\n[ \"$1\" = --list-test-names-only ] && seq 3 && echo '0 passed, 0 failed'\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  CHECK_THAT(tree.Run({"test"}).output,
             EndsWith("\n6 cases not run: they need a GPU\n1 passed, 0 failed\n"));
  CHECK_THAT(tree.Run({"test", "//a:script_test"}).output, !Contains("GPU"));
  tree.Fake("nvidia-smi", "echo 'GPU 0: NVIDIA H100'");
  CHECK_THAT(tree.Run({"test"}).output, !Contains("GPU"));
}

TEST_CASE("the tests are given a Python with the packages they need, made once") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "//a:script_test                PASSED in 0.2s\n");
  const std::string given =
      "--test_env=LOCKSTEP_PYTHON=" + tree.folder().Path(".cache/lockstep/python/bin/python3");
  CHECK(tree.Run({"test"}).exit_code == 0);
  auto calls = tree.Calls();
  REQUIRE(calls.size() == 7);
  // What many tests need is built meanwhile. With other options Bazel would analyze all again.
  std::sort(calls.begin() + 1, calls.begin() + 5);
  CHECK(std::vector(calls.begin() + 1, calls.end()) ==
        std::vector<std::string>{given, "bazel build", "pip", "python3 -m venv", "bazel test",
                                 given});

  tree.folder().Write("calls", "");
  CHECK(tree.Run({"test"}).exit_code == 0);
  CHECK(tree.Calls() == std::vector<std::string>{"bazel test", given});
}

TEST_CASE("without a package index the tests run without their Python, after a word about it") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "//a:script_test                PASSED in 0.2s\n");
  tree.folder().Write("offline", "");
  const Ended ended = tree.Run({"test"});
  CHECK_THAT(ended.output, Contains("ERROR: no index") && Contains("Remedy"));
  const auto calls = tree.Calls();
  CHECK(calls.back() == "bazel test");
}

TEST_CASE("the benchmark's peers are installed and built when asked for, once") {
  const Tree tree;
  tree.folder().Write("lists", "");
  CHECK_THAT(tree.Run({"bench", "--rows=a"}).output, Contains("--rows=a"));
  CHECK(tree.Calls().size() == 2);  // apt-get and bazel

  tree.folder().Write("calls", "");
  const Ended ended = tree.Run({"bench", "--peers", "--rows=a"});
  CHECK(ended.exit_code == 0);
  const std::string cache = tree.folder().Path(".cache/lockstep/");
  CHECK_THAT(ended.output,
             Contains("--peers_dir=" + cache + "peers --tensorflow=" + cache +
                      "tensorflow/bin/python3 --torch=" + cache + "torch/bin/python3 --rows=a"));
  const auto calls = tree.Calls();
  REQUIRE(calls.size() == 9);
  CHECK_THAT(calls[0], Contains("libgloo-dev libopenmpi-dev libzmq3-dev openmpi-bin"));
  CHECK(std::vector(calls.begin() + 1, calls.end()) ==
        std::vector<std::string>{"g++ gloo_step -lgloo", "g++ mpi_step -lmpi",
                                 "g++ zeromq_step -lzmq", "python3 -m venv", "pip",
                                 "python3 -m venv", "pip", "bazel build"});

  tree.folder().Write("calls", "");
  CHECK(tree.Run({"bench", "--peers"}).exit_code == 0);
  CHECK(tree.Calls() == std::vector<std::string>{"bazel build"});
}

TEST_CASE("a peer that does not build is shown with its reason, Python's may be missing") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("offline", "");
  const Ended without = tree.Run({"bench", "--peers"});
  CHECK(without.exit_code == 0);
  CHECK_THAT(without.output, Contains("the rows of tensorflow stay without a peer") &&
                                 Contains("the rows of torch stay without a peer"));
  std::filesystem::remove(tree.folder().Path(".cache/lockstep/peers/gloo_step"));
  tree.folder().Write("broken", "");
  const Ended broken = tree.Run({"bench", "--peers"});
  CHECK(broken.exit_code == 70);
  CHECK_THAT(broken.output, Contains("error: no gloo") && Contains("gloo_step does not build"));
}

TEST_CASE("TensorFlow's recorded answers are replayed by a program that is built first") {
  const Tree tree;
  tree.folder().Write("lists", "");
  const Ended ended = tree.Run({"test", "--oracle", "some/folder"});
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("tests/oracle/replay some/folder\n"));
  const auto calls = tree.Calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[1] == "bazel build");

  const Ended unknown = tree.Run({"test", "--oracle", "some/folder", "--through=tin"});
  CHECK(unknown.exit_code == 64);
  CHECK_THAT(unknown.output, Contains("--through=tin") && Contains("Remedy"));
}

TEST_CASE("simulated jobs are run by a program that is built first") {
  const Tree tree;
  tree.folder().Write("lists", "");
  const Ended ended = tree.Run({"test", "--sim", "--seeds=7", "--least_faults=9"});
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("tests/sim/simulate --seeds=7 --least_faults=9\n"));
  const auto calls = tree.Calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[1] == "bazel build");

  const Ended unknown = tree.Run({"test", "--sim", "--sheep=7"});
  CHECK(unknown.exit_code == 64);
  CHECK_THAT(unknown.output, Contains("--sheep=7") && Contains("Remedy"));
}

TEST_CASE("help, version and mistakes need no installation") {
  const Tree tree;
  CHECK_THAT(tree.Run({}).output, Contains("./lockstep demo"));
  CHECK(tree.Run({"version"}).output == "lockstep 1.2.3\n");
  const Ended unknown = tree.Run({"trian"});
  CHECK(unknown.exit_code == 64);
  CHECK_THAT(unknown.output, Contains("trian") && Contains("Remedy"));
  for (const std::vector<std::string>& bundle :
       {std::vector<std::string>{"bundle"}, {"bundle", "a.tar.xz", "b.tar.xz"}, {"bundle", "-x"}}) {
    const Ended mistaken = tree.Run(bundle);
    CHECK(mistaken.exit_code == 64);
    CHECK_THAT(mistaken.output, Contains("lockstep bundle FILE.tar.xz") && Contains("Remedy"));
  }
  CHECK(tree.Calls().empty());
}

}  // namespace
}  // namespace lockstep::test
