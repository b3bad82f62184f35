// `lockstep check` against stand-ins for clang, git and Bazel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/script_tree.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

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
)";

TEST_CASE("a failing check names itself, its file and the reason, and counts as failed") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", kCommands);
  tree.Fake("git", "echo common/a.cc");
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

  tree.Fake("clang-tidy-14", "case $* in *'b.cc -- -c'*) echo 'b.cc:7: moved'; exit 1 ;; esac");
  const Ended untidy = tree.Run({"check", "tidy"});
  CHECK(untidy.exit_code == 1);
  CHECK_THAT(untidy.output, Contains("b.cc:7: moved\ntidy: common/b.cc: clang ended with 1\n"));

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

}  // namespace
}  // namespace lockstep::test
