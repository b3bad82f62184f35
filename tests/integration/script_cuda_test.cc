// `lockstep build --cuda` against stand-ins for pip and Bazel.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/script_tree.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

// In which all packages can be installed.
class CudaTree : public Tree {
 public:
  CudaTree() { folder().Write("lists", ""); }

  // What Bazel was given as CUDA_HOME.
  std::string CudaHome() const { return folder().Read("cuda_home"); }
  std::string Toolkit() const { return folder().Path(".cache/lockstep/cuda"); }
  bool Has(const std::string& path) const { return std::filesystem::exists(folder().Path(path)); }
  // A folder with a toolkit.
  std::string OwnToolkit(int version = 13000) const {
    const std::string nvcc = folder().Write("own/bin/nvcc", "");
    std::filesystem::permissions(nvcc, std::filesystem::perms::owner_all);
    folder().Write("own/include/cuda_runtime_api.h",
                   absl::StrCat("#define CUDART_VERSION  ", version, "\n"));
    return folder().Path("own");
  }
};

TEST_CASE("a CUDA toolkit is installed when asked for, once, and then used by every build") {
  const CudaTree tree;
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.CudaHome() == "\n");

  const Ended installed = tree.Run({"build", "--cuda"});
  CHECK(installed.exit_code == 0);
  CHECK_THAT(installed.output, Contains("missing Debian packages: python3-venv\n") &&
                                   Contains("installing a CUDA toolkit in " + tree.Toolkit()) &&
                                   Contains("bazel-bin/worker/worker\n"));
  CHECK(tree.CudaHome() == tree.Toolkit() + "\n");
  CHECK(tree.Has(".cache/lockstep/cuda/bin/nvcc"));
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda/lib"));
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda.part"));
  const auto calls = tree.Calls();
  REQUIRE(calls.size() == 6);
  CHECK(std::vector(calls.begin() + 3, calls.end()) ==
        std::vector<std::string>{"python3 -m venv", "pip", "bazel build"});

  // The programs are built, whether it is asked for again or not.
  tree.folder().Write("calls", "");
  CHECK(tree.Run({"build", "--cuda"}).exit_code == 0);
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls().empty());
  tree.folder().Write("common/base/new.cc", "");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls() == std::vector<std::string>{"bazel build"});
  CHECK(tree.CudaHome() == tree.Toolkit() + "\n");
}

TEST_CASE("CUDA_HOME comes before the toolkit that is installed, and another one builds again") {
  const CudaTree tree;
  const std::string own = tree.OwnToolkit();
  const Ended named = tree.Run({"build", "--cuda"}, own);
  CHECK(named.exit_code == 0);
  CHECK_THAT(named.output, Contains("CUDA_HOME names a toolkit, " + own));
  CHECK(tree.CudaHome() == own + "\n");
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda"));

  CHECK(tree.Run({"build", "--cuda"}).exit_code == 0);
  CHECK(tree.CudaHome() == tree.Toolkit() + "\n");
  CHECK(tree.Run({"build"}, own).exit_code == 0);
  CHECK(tree.CudaHome() == own + "\n");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.CudaHome() == tree.Toolkit() + "\n");
}

TEST_CASE(
    "a CUDA_HOME without a compiler, or with an old one, is an error when kernels are asked for") {
  const CudaTree tree;
  const Ended ended = tree.Run({"build", "--cuda"}, "/nowhere");
  CHECK(ended.exit_code == 78);
  CHECK_THAT(ended.output, Contains("/nowhere, which has no bin/nvcc. Remedy: "));
  CHECK(tree.Calls().empty());
  const Ended old = tree.Run({"build", "--cuda"}, tree.OwnToolkit(11080));
  CHECK(old.exit_code == 78);
  CHECK_THAT(old.output, Contains("expected CUDART_VERSION 12000 or above in ") &&
                             Contains("got '11080'. Remedy: "));
  CHECK(tree.Calls().empty());
}

TEST_CASE("a toolkit of other packages than those named is replaced when asked for") {
  const CudaTree tree;
  CHECK(tree.Run({"build", "--cuda"}).exit_code == 0);
  tree.folder().Write(".cache/lockstep/cuda/installed.txt", "nvidia-cuda-nvcc==12.0\n");
  tree.folder().Write(".cache/lockstep/cuda/old", "");
  tree.folder().Write("calls", "");
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.Calls().empty());
  CHECK(tree.Run({"build", "--cuda"}).exit_code == 0);
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda/old"));
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda.part"));
}

TEST_CASE("without a package index nothing is built, and nothing of a toolkit stays") {
  const CudaTree tree;
  tree.folder().Write("offline", "");
  const Ended ended = tree.Run({"build", "--cuda"});
  CHECK(ended.exit_code == 138);
  CHECK_THAT(ended.output,
             Contains("ERROR: no index") &&
                 Contains("pip cannot install deploy/cuda/requirements.txt. Remedy: "));
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda"));
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda.part"));
  CHECK_FALSE(tree.Has("cuda_home"));
}

TEST_CASE("a toolkit for which there is no room is refused with the bytes it needs") {
  const CudaTree tree;
  tree.Fake("df", "echo Avail; echo 449999999");
  const Ended ended = tree.Run({"build", "--cuda"});
  CHECK(ended.exit_code == 73);
  CHECK_THAT(ended.output,
             Contains("needs 450000000 bytes in " + tree.folder().Path(".cache/lockstep") +
                      ", and 449999999 are free. Remedy: "));
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda.part"));
  tree.Fake("df", "echo Avail; echo 450000000");
  CHECK(tree.Run({"build", "--cuda"}).exit_code == 0);
}

TEST_CASE("an installation that is cut off is not used, and the next one begins anew") {
  const CudaTree tree;
  tree.folder().Write("slow", "");
  for (const int signal : {SIGINT, SIGKILL}) {
    Process script(tree.Command({"build", "--cuda"}), tree.Environment());
    REQUIRE(script.WaitForOutput("installing a CUDA toolkit", absl::Seconds(20)));
    // What is downloaded lies beside the toolkit.
    REQUIRE(WaitForText(tree.folder().Path("slow"),
                        tree.folder().Path(".cache/lockstep/cuda.part/tmp") + "\n",
                        absl::Seconds(20)));
    script.Signal(signal);
    CHECK(script.Wait(absl::Seconds(10)) == 128 + signal);
    CHECK(tree.Has(".cache/lockstep/cuda.part") == (signal == SIGKILL));
    CHECK_FALSE(tree.Has(".cache/lockstep/cuda"));
    tree.folder().Write("slow", "");
  }
  std::filesystem::remove(tree.folder().Path("slow"));
  CHECK(tree.Run({"build"}).exit_code == 0);
  CHECK(tree.CudaHome() == "\n");
  CHECK(tree.Run({"build", "--cuda"}).exit_code == 0);
  CHECK(tree.CudaHome() == tree.Toolkit() + "\n");
  CHECK_FALSE(tree.Has(".cache/lockstep/cuda.part"));
}

TEST_CASE("a toolkit is installed by one command at a time") {
  const CudaTree tree;
  tree.folder().Write("slow", "");
  Process first(tree.Command({"build", "--cuda"}), tree.Environment());
  REQUIRE(WaitForText(tree.folder().Path("slow"),
                      tree.folder().Path(".cache/lockstep/cuda.part/tmp") + "\n",
                      absl::Seconds(20)));
  Process second(tree.Command({"build", "--cuda"}), tree.Environment());
  CHECK(second.WaitForOutput("another command builds here", absl::Seconds(20)));
  second.Signal(SIGINT);
  CHECK(second.Wait(absl::Seconds(10)) == 130);
  CHECK(tree.Has(".cache/lockstep/cuda.part/tmp"));
  first.Signal(SIGINT);
  CHECK(first.Wait(absl::Seconds(10)) == 130);
}

TEST_CASE("build says what it can, and refuses what it cannot, before it installs anything") {
  const CudaTree tree;
  const Ended help = tree.Run({"build", "--help"});
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.output, Contains("  1. CUDA_HOME\n  2. .cache/lockstep/cuda, ") &&
                              Contains("\n  3. /usr/local/cuda\n"));
  const Ended unknown = tree.Run({"build", "--cudnn"});
  CHECK(unknown.exit_code == 64);
  CHECK_THAT(unknown.output, Contains("--cudnn") && Contains("Remedy: ./lockstep build [--cuda]"));
  CHECK(tree.Calls().empty());
}

}  // namespace
}  // namespace lockstep::test
