// `lockstep check` against stand-ins for clang, git and Bazel.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/script_tree.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

// How Bazel tells what it compiles.
constexpr char kCommands[] = R"(action 'Compiling a.cc'
  Command Line: (exec /usr/bin/gcc \
    -Werror \
    -Winvalid-pch \
    -include \
    common/bazel/library_headers.h \
    -c \
    common/a.cc \
    -o \
    a.o)
  Command Line: (exec /usr/bin/gcc \
    -c \
    common/b.cc \
    -o \
    b.o)
  Command Line: (exec /usr/bin/gcc \
    -c \
    common/c.cc \
    -o \
    c.o)
)";

// a.cc has a lock, b.cc includes what includes one, c.cc has none.
void WriteSources(const Tree& tree) {
  tree.folder().Write("common/a.cc", "absl::Mutex mutex;\n");
  tree.folder().Write("common/b.cc", "#include \"common/b.h\"\n");
  tree.folder().Write("common/b.h", "#pragma once\n#include \"common/guarded.h\"\n");
  tree.folder().Write("common/guarded.h", "int shared ABSL_GUARDED_BY(lock);\n");
  tree.folder().Write("common/c.cc", "#include \"common/c.h\"\n");
  tree.folder().Write("common/c.h", "#include \"common/c.h\"\n#include <vector>\n");
  tree.Fake("git",
            "printf '%s\\n' common/a.cc common/b.h common/c.h common/guarded.h common/gone.h");
}

TEST_CASE("a failing check names itself, its file and the reason, and counts as failed") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", kCommands);
  WriteSources(tree);
  tree.Fake("clang-format-14", "");
  tree.Fake("clang++-14", "echo \"clang $*\" >>\"$FAKE/calls\"");
  const Ended passed = tree.Run({"check", "format", "locks"});
  CHECK(passed.exit_code == 0);
  CHECK_THAT(passed.output, EndsWith("\n2 passed, 0 failed\n"));
  const auto calls = tree.Calls();
  const std::string headers = tree.folder().Path(".cache/lockstep/common.pch");
  CHECK(std::count(calls.begin(), calls.end(),
                   absl::StrCat("clang -include-pch ", headers,
                                " -c common/a.cc -fsyntax-only -Wno-everything "
                                "-Werror=thread-safety")) == 1);
  CHECK_THAT(passed.output, Contains("locks: reading 2 of 3 translation units"));
  CHECK(std::ranges::count_if(calls, [](const std::string& call) {
          return absl::StrContains(call, "-fsyntax-only");
        }) == 2);
  CHECK(std::count(calls.begin(), calls.end(),
                   absl::StrCat("clang -Wno-everything -x c++-header ",
                                "bazel-bin/common/bazel/library_headers.h -o ", headers)) == 1);

  // Killed: it cannot say so itself.
  tree.Fake("clang++-14", "case $* in *common/b.cc*) kill -9 $$ ;; esac");
  const Ended killed = tree.Run({"check", "format", "locks"});
  CHECK(killed.exit_code == 1);
  CHECK_THAT(killed.output, Contains("locks: common/b.cc: clang ended with 137\n") &&
                                Contains("locks: failed") && !Contains("common/a.cc: clang") &&
                                EndsWith("\n1 passed, 1 failed\n"));

  tree.Fake("clang-tidy-14", "case $* in *'c.cc -- -c'*) echo 'c.cc:7: moved'; exit 1 ;; esac");
  const Ended untidy = tree.Run({"check", "tidy"});
  CHECK(untidy.exit_code == 1);
  CHECK_THAT(untidy.output, Contains("c.cc:7: moved\ntidy: common/c.cc: clang ended with 1\n"));

  tree.folder().Write("results", "");
  const Ended empty = tree.Run({"check", "tidy"});
  CHECK(empty.exit_code == 1);
  CHECK_THAT(empty.output, Contains("lists no translation units"));

  // Its own configuration, and all targets.
  tree.folder().Write("calls", "");
  CHECK_THAT(tree.Run({"check", "build"}).output, EndsWith("\n1 passed, 0 failed\n"));
  tree.folder().Write("code", "1");
  CHECK_THAT(tree.Run({"check", "asan"}).output, EndsWith("\n0 passed, 1 failed\n"));
  CHECK(tree.Calls() == std::vector<std::string>{"bazel build", "bazel test"});

  const Ended unknown = tree.Run({"check", "colour"});
  CHECK(unknown.exit_code == 64);
  CHECK_THAT(unknown.output, Contains("unknown check 'colour'") && Contains("format"));
}

TEST_CASE("a check that does not build counts as failed, and the next one runs") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("broken", "");
  tree.Fake("git", "");
  tree.Fake("clang-format-14", "");
  for (const std::string check : {"fuzz", "locks", "sim", "chaos"}) {
    CAPTURE(check);
    const Ended ended = tree.Run({"check", check, "format"});
    CHECK(ended.exit_code == 1);
    CHECK_THAT(ended.output, Contains("a.cc:7:1: error") && Contains(check + ": failed") &&
                                 EndsWith("\n1 passed, 1 failed\n"));
    CHECK(ProcessesWith(tree.folder().path()).empty());  // Bazel's server neither
  }
}

TEST_CASE("a signal ends a check and what it has started") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("slow", "");
  for (const int signal : {SIGINT, SIGTERM}) {
    Process script(tree.Command({"check", "fuzz"}), tree.Environment());
    REQUIRE(script.WaitForOutput("1 of 9", absl::Seconds(20)));
    script.Signal(signal);
    CHECK(script.Wait(absl::Seconds(10)) == 128 + signal);
    CHECK(ProcessesWith(tree.folder().path()).empty());
  }
}

TEST_CASE("a second signal ends a check whose build hears none") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.Fake("bazel",
            "echo '[1 / 9] Compiling slow.cc'\ntrap '' INT TERM\n"
            "while :; do sleep 60; done\n");
  Process script(tree.Command({"check", "fuzz"}), tree.Environment());
  REQUIRE(script.WaitForOutput("1 of 9", absl::Seconds(20)));
  script.Signal(SIGTERM);
  std::optional<int> code;
  for (int times = 0; times < 20 && !code.has_value(); ++times) {
    code = script.Wait(absl::Seconds(1));
    if (!code.has_value()) script.Signal(SIGTERM);
  }
  CHECK(code == 128 + SIGTERM);
  CHECK(ProcessesWith(tree.folder().path()).empty());
}

// The command lines that Bazel gets.
std::string BazelCallsOf(const Tree& tree, const std::string& check) {
  tree.folder().Write("calls", "");
  tree.Fake("bazel", "echo \"$*\" >>\"$FAKE/calls\"; cat \"$FAKE/results\"");
  const Ended ended = tree.Run({"check", check});
  CHECK_THAT(ended.output, EndsWith("\n1 passed, 0 failed\n"));
  return tree.folder().Read("calls");
}

TEST_CASE("the check of kills runs those that tests only sample, and tells what they found") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "save_test.cc:7: warning:\n  500 kills, 9 checkpoints\n");
  CHECK_THAT(BazelCallsOf(tree, "kills"),
             Contains(" test ") && Contains(" --test_arg=[.kills] ") &&
                 Contains(" //tests/unit/chief/checkpoint:failing_disk_test ") &&
                 Contains(" //tests/integration:failing_disk_test\n"));
  CHECK_THAT(tree.Run({"check", "kills"}).output, StartsWith("500 kills, 9 checkpoints\n"));
}

TEST_CASE("all tests run under a sanitizer in the build of those of some packages") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "");
  for (const std::string sanitizer : {"asan", "tsan"}) {
    CHECK_THAT(BazelCallsOf(tree, sanitizer + "_all"),
               Contains(" --config=" + sanitizer + " ") && Contains(" //tests/... ") &&
                   Contains(" --platform_suffix=-" + sanitizer + " "));
  }
}

}  // namespace
}  // namespace lockstep::test
