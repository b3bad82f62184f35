// Ctrl-C while `lockstep up` and `lockstep demo` run none of the job's processes.
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "common/fs/file_descriptor.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Seconds(10);

void WriteScript(const TemporaryFolder& folder, const std::string& name, const std::string& body) {
  std::filesystem::permissions(folder.Write(name, "#!/bin/sh\n" + body),
                               std::filesystem::perms::owner_all);
}

TEST_CASE("Ctrl-C ends up while it reads the data") {
  const TemporaryFolder folder;
  folder.Write("model.textproto",
               "input_shape: 1 layers { name: 'd' dense { units: 2 } } "
               "layers { name: 'loss' softmax_cross_entropy {} }");
  const std::string data = folder.Write("t.csv", "a,y\n1,0\n5,1\n");
  const std::string job = folder.Write("job.textproto", R"(
      model: "model.textproto" global_batch: 2 max_steps: 3
      data { csv { train: "t.csv" test: "t.csv" label_column: "y" } }
      optimizer { sgd {} learning_rate { base: 0.1 } } local { ps: 1 workers: 1 })");
  const FileDescriptor opened(inotify_init1(IN_CLOEXEC));
  REQUIRE(inotify_add_watch(opened.get(), data.c_str(), IN_OPEN) >= 0);
  Process up({Binary("deploy/cli/up"), "--job=" + job},
             {"LD_PRELOAD=" + Binary("tests/support/preloaded_disk_faults.so"),
              "LOCKSTEP_DISK_FAULTS=" + folder.path() + ",read,t.csv,1,hang"});
  pollfd ready = {.fd = opened.get(), .events = POLLIN};
  REQUIRE(poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kWhole))) == 1);
  up.Signal(SIGINT);
  CHECK(up.Wait(kShort) == 128 + SIGINT);
  CHECK(up.Output().empty());
}

TEST_CASE("Ctrl-C ends the demo and what it has started while it draws images") {
  const TemporaryFolder folder;
  WriteScript(
      folder, "chief/chief",
      "for a; do case $a in --summary=*)\n"
      "echo '{\"steps\": 3, \"checkpoint\": \"/c/ckpt-3\"}' >${a#--summary=};; esac; done\n");
  WriteScript(folder, "ps/ps",
              "until [ -s \"${0%/*}/../run/summary.json\" ]; do sleep 0.05; done\n");
  WriteScript(folder, "worker/worker", "");
  // Keeps the folder in its command line, by which it is found.
  WriteScript(folder, "worker/predict", "echo predicting\nexec tail -f \"$0\"\n");
  Process demo({Binary("deploy/cli/demo"), "--dataset=gan", "--bin_dir=" + folder.path(),
                "--examples_dir=" + Binary("deploy/examples"), "--run_dir=" + folder.Path("run")});
  REQUIRE(demo.WaitForOutput("trained 3 steps", kWhole));
  REQUIRE(WaitForText(folder.Path("run/logs/generate-grid.log"), "predicting", kWhole));
  demo.Signal(SIGINT);
  CHECK(demo.Wait(kShort) == 128 + SIGINT);
  CHECK(WaitForNoneWith(folder.path(), kShort));
}

}  // namespace
}  // namespace lockstep::test
