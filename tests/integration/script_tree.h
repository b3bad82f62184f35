// A copy of the entry script in a tree of its own, with stand-ins for the programs that it calls.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

// Every call of a stand-in becomes a line of the file `calls`. `installed` lists packages.
inline constexpr char kDpkgQuery[] = R"sh(
for package; do grep -qxF "$package" "$FAKE/installed" && echo "installed $package"; done; true
)sh";
inline constexpr char kAptGet[] = R"sh(
echo "apt-get $*" >>"$FAKE/calls"
case " $* " in
*" update "*) touch "$FAKE/lists" ;;
*" install "*)
  [ -f "$FAKE/lists" ] || { echo "E: Unable to locate package"; exit 100; }
  echo "pmstatus:g++:42.0:Unpacking g++" >&3
  for package; do case $package in -*) ;; *) echo "$package" >>"$FAKE/installed" ;; esac; done ;;
esac
)sh";
inline constexpr char kBazel[] = R"sh(
case $1 in --*) shift ;; esac
if [ "$1" = query ]; then cat "$FAKE/gpu_tests" 2>/dev/null; exit; fi
echo "bazel $1" >>"$FAKE/calls"
echo "$CUDA_HOME" >"$FAKE/cuda_home"
setsid tail -f "$FAKE/installed" >/dev/null 2>&1 &  # the server
cd "$(dirname "$0")/.." || exit 1
for option; do case $option in --test_env=*) echo "$option" >>"$FAKE/calls" ;; esac; done
[ ! -p "$FAKE/gate" ] || read -r _ <"$FAKE/gate"
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
inline constexpr char kPython[] = R"sh(
echo "python3 $1 $2" >>"$FAKE/calls"
mkdir -p "$3/bin"
cp "$FAKE/fakes/pip" "$3/bin/"
)sh";

// Installs what is asked of the CUDA toolkit's packages.
inline constexpr char kPip[] = R"sh(
echo "pip" >>"$FAKE/calls"
[ ! -f "$FAKE/offline" ] || { echo "ERROR: no index"; exit 1; }
case $* in *deploy/cuda/requirements.txt)
  toolkit=${0%/bin/pip}/lib/python3.11/site-packages/nvidia/cu13
  mkdir -p "$toolkit/bin" "$toolkit/lib"
  touch "$toolkit/bin/nvcc" "$toolkit/lib/libcudart_static.a"
  [ ! -f "$FAKE/slow" ] || { echo "$TMPDIR" >"$FAKE/slow"; exec tail -f "$FAKE/slow"; }
  chmod +x "$toolkit/bin/nvcc" ;;
esac
)sh";

// Makes the program that it is told to.
inline constexpr char kCompiler[] = R"sh(
[ ! -f "$FAKE/broken" ] || { echo "gloo_step.cc:1: error: no gloo"; exit 1; }
while [ "$1" != -o ]; do shift; done
echo "g++ ${2##*/} $3" >>"$FAKE/calls"
touch "$2"
)sh";

class Tree {
 public:
  Tree() {
    Copy("lockstep");
    Copy("deploy/packages.txt");
    Copy("deploy/cuda/requirements.txt");
    Copy("tests/interop/requirements.txt");
    Copy("tests/oracle/requirements.txt");
    Copy("tests/bench/torch_requirements.txt");
    folder_.Write("tests/bench/peers/gloo_step.cc", "");
    for (const char* name :
         {"bench", "build", "bundle", "chaos", "check", "compile_commands", "cuda", "fuzz", "help",
          "job", "oracle", "packages", "sim", "test", "venv"}) {
      Copy(std::string("deploy/cli/") + name + ".sh");
    }
    for (const char* name :
         {"bench", "build", "bundle", "chaos", "check", "compile_commands", "fuzz", "test"}) {
      Copy(std::string("deploy/cli/help/") + name + ".txt");
    }
    folder_.Write("common/base/version.h",
                  "inline inline constexpr char kVersion[] = \"1.2.3\";\n");
    for (const char* name : {"certificates", "demo", "status", "stop", "token", "up"}) {
      Copy(std::string("deploy/cli/") + name + "_main.cc");
    }
    Copy("worker/predict_main.cc");
    Fake("dpkg-query", kDpkgQuery);
    Fake("dpkg", "");
    Fake("apt-get", kAptGet);
    Fake("bazel", kBazel);
    Fake("python3", kPython);
    Fake("pip", kPip);
    Fake("g++", kCompiler);
    Fake("pkg-config", "echo -lmpi\n");
    Fake("id", "echo 0");
    Fake("nvidia-smi", "exit 9");
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
  // `cuda_home`: as the user has set it.
  std::vector<std::string> Environment(const std::string& cuda_home = "") const {
    return {"PATH=" + folder_.Path("fakes") + ":/usr/bin:/bin", "FAKE=" + folder_.path(),
            "HOME=" + folder_.path(), "CUDA_HOME=" + cuda_home};
  }
  Ended Run(const std::vector<std::string>& arguments, const std::string& cuda_home = "") const {
    return RunToEnd(Command(arguments), absl::Seconds(30), Environment(cuda_home));
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

}  // namespace lockstep::test
