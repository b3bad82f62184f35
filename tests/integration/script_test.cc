// The entry script against stand-ins for the package manager and Bazel, in a tree of its own.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

// Every call of a stand-in becomes a line of the file `calls`. `installed` lists packages.
constexpr char kDpkgQuery[] = R"sh(
for package; do grep -qxF "$package" "$FAKE/installed" && echo "installed $package"; done; true
)sh";
constexpr char kAptGet[] = R"sh(
echo "apt-get $*" >>"$FAKE/calls"
case " $* " in
*" update "*) touch "$FAKE/lists" ;;
*" install "*)
  [ -f "$FAKE/lists" ] || { echo "E: Unable to locate package"; exit 100; }
  echo "pmstatus:g++:42.0:Unpacking g++" >&3
  for package; do case $package in -*) ;; *) echo "$package" >>"$FAKE/installed" ;; esac; done ;;
esac
)sh";
constexpr char kBazel[] = R"sh(
case $1 in --*) shift ;; esac
echo "bazel $1" >>"$FAKE/calls"
setsid tail -f "$FAKE/installed" >/dev/null 2>&1 &  # the server
cd "$(dirname "$0")/.." || exit 1
for option; do case $option in --test_env=*) echo "$option" >>"$FAKE/calls" ;; esac; done
[ ! -f "$FAKE/slow" ] || { echo "[1 / 9] Compiling slow.cc"; exec tail -f "$FAKE/slow"; }
[ ! -f "$FAKE/broken" ] || { echo "[3 / 9] Compiling a.cc"; echo "a.cc:7:1: error: expected ';'"; exit 1; }
if [ "$1" = build ]; then
  for target; do case $target in //*)
    path=${target#//}; path=bazel-bin/${path%%:*}/${path##*:}
    mkdir -p "${path%/*}"; printf '#!/bin/sh\necho "ran $0 $*"\n' >"$path"; chmod +x "$path" ;;
  esac; done
else
  cat "$FAKE/results"
  exit "$(cat "$FAKE/code" 2>/dev/null || echo 0)"
fi
)sh";

// `python3 -m venv FOLDER`: a Python that has nothing but pip.
constexpr char kPython[] = R"sh(
echo "python3 $1 $2" >>"$FAKE/calls"
mkdir -p "$3/bin"
printf '#!/bin/sh\necho "pip" >>"$FAKE/calls"\n[ ! -f "$FAKE/offline" ] || { echo "ERROR: no index"; exit 1; }\n' \
  >"$3/bin/pip"
chmod +x "$3/bin/pip"
)sh";

// Makes the program that it is told to.
constexpr char kCompiler[] = R"sh(
[ ! -f "$FAKE/broken" ] || { echo "gloo_step.cc:1: error: no gloo"; exit 1; }
while [ "$1" != -o ]; do shift; done
echo "g++ ${2##*/} $3" >>"$FAKE/calls"
touch "$2"
)sh";

// How Bazel tells what it compiles.
constexpr char kCommands[] = R"(action 'Compiling a.cc'
  Command Line: (exec /usr/bin/gcc \
    -Werror \
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

class Tree {
 public:
  Tree() {
    Copy("lockstep");
    Copy("deploy/packages.txt");
    Copy("tests/interop/requirements.txt");
    Copy("tests/oracle/requirements.txt");
    Copy("tests/bench/torch_requirements.txt");
    folder_.Write("tests/bench/peers/gloo_step.cc", "");
    for (const char* name : {"bench", "build", "check", "compile_commands", "job", "oracle",
                             "packages", "test", "venv"}) {
      Copy(std::string("deploy/cli/") + name + ".sh");
    }
    folder_.Write("common/base/version.h", "inline constexpr char kVersion[] = \"1.2.3\";\n");
    Fake("dpkg-query", kDpkgQuery);
    Fake("dpkg", "");
    Fake("apt-get", kAptGet);
    Fake("bazel", kBazel);
    Fake("python3", kPython);
    Fake("g++", kCompiler);
    Fake("id", "echo 0");
    folder_.Write("installed", "");
    folder_.Write("calls", "");
  }

  const TemporaryFolder& folder() const { return folder_; }
  void Fake(const std::string& name, const std::string& script) const {
    const std::string path = folder_.Write("fakes/" + name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  void InstallAll() const {
    Run({"build"});
    folder_.Write("calls", "");
  }

  std::vector<std::string> Command(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {folder_.Path("lockstep")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  std::vector<std::string> Environment() const {
    return {"PATH=" + folder_.Path("fakes") + ":/usr/bin:/bin", "FAKE=" + folder_.path(),
            "HOME=" + folder_.path()};
  }
  Ended Run(const std::vector<std::string>& arguments) const {
    return RunToEnd(Command(arguments), absl::Seconds(30), Environment());
  }
  std::vector<std::string> Calls() const {
    return absl::StrSplit(folder_.Read("calls"), '\n', absl::SkipEmpty());
  }

 private:
  void Copy(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.Path(path)).parent_path());
    std::filesystem::copy_file(Binary(path), folder_.Path(path));
    std::filesystem::permissions(folder_.Path(path), std::filesystem::perms::owner_all);
  }

  TemporaryFolder folder_;
};

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

TEST_CASE("a changed source is built again") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.InstallAll();
  tree.folder().Write("common/base/new.cc", "");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls() == std::vector<std::string>{"bazel build"});
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

TEST_CASE("a failing build shows the compiler's error and not its progress") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("broken", "");
  const Ended ended = tree.Run({"build"});
  CHECK(ended.exit_code == 70);
  CHECK_THAT(ended.output, Contains("a.cc:7:1: error") && !Contains("[3 / 9]"));
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

TEST_CASE("the tests are given a Python with the packages they need, made once") {
  const Tree tree;
  tree.folder().Write("lists", "");
  tree.folder().Write("results", "//a:script_test                PASSED in 0.2s\n");
  const std::string given =
      "--test_env=LOCKSTEP_PYTHON=" + tree.folder().Path(".cache/lockstep/python/bin/python3");
  CHECK(tree.Run({"test"}).exit_code == 0);
  const auto calls = tree.Calls();
  REQUIRE(calls.size() > 3);
  CHECK(std::vector(calls.begin() + 1, calls.begin() + 5) ==
        std::vector<std::string>{"python3 -m venv", "pip", "bazel test", given});

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
  CHECK(std::count(calls.begin(), calls.end(), "bazel test") == 1);
  CHECK(std::none_of(calls.begin(), calls.end(),
                     [](const std::string& call) { return call[0] == '-'; }));
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
  REQUIRE(calls.size() == 8);
  CHECK_THAT(calls[0], Contains("libgloo-dev libzmq3-dev"));
  CHECK(std::vector(calls.begin() + 1, calls.end()) ==
        std::vector<std::string>{"g++ gloo_step -lgloo", "g++ zeromq_step -lzmq", "python3 -m venv",
                                 "pip", "python3 -m venv", "pip", "bazel build"});

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

TEST_CASE("a check that fails says which, of what file and why, and counts as failed") {
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
  CHECK(std::count(calls.begin(), calls.end(),
                   "clang -c common/a.cc -fsyntax-only -Wno-everything -Werror=thread-safety") ==
        1);

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

TEST_CASE("help, version and mistakes need no installation") {
  const Tree tree;
  CHECK_THAT(tree.Run({}).output, Contains("./lockstep demo"));
  CHECK(tree.Run({"version"}).output == "lockstep 1.2.3\n");
  const Ended unknown = tree.Run({"trian"});
  CHECK(unknown.exit_code == 64);
  CHECK_THAT(unknown.output, Contains("trian") && Contains("Remedy"));
  CHECK(tree.Calls().empty());
}

}  // namespace
}  // namespace lockstep::test
