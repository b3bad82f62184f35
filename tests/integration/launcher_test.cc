// `lockstep up` against stand-ins for the daemons: shell scripts that end as the case asks.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

// Keeps the path in its command line, by which it is found, and prints itself.
constexpr char kForever[] = "exec tail -f \"$0\"\n";
constexpr char kChiefDone[] =
    "sleep 0.5\n"
    "for a; do case $a in --summary=*) echo '{\"test_accuracy\": 0.5, \"steps\": 3}' "
    ">${a#--summary=};; esac; done\n";
// As a ps does, it goes on until the chief is done, however slow the machine is.
constexpr char kUntilDone[] =
    "until [ -s \"${0%/*}/../run/summary.json\" ]; do sleep 0.05; done\nsleep 0.2\n";

struct Scripts {
  std::string chief = kForever;
  std::string ps = kForever;
  std::string worker0 = kForever;
  std::string worker1 = kForever;
  std::string worker2 = kForever;
};

// A job with 2 ps and 3 workers, of which a step needs 2.
class Launch {
 public:
  explicit Launch(const Scripts& scripts) {
    Script("chief", scripts.chief);
    Script("ps", scripts.ps);
    Script("worker", "case \"$*\" in\n*index=0*)\n" + scripts.worker0 + ";;\n*index=1*)\n" +
                         scripts.worker1 + ";;\n*)\n" + scripts.worker2 + ";;\nesac\n");
    folder_.Write("model.textproto",
                  "input_shape: 4 layers { name: 'd' dense { units: 2 } } "
                  "layers { name: 'loss' softmax_cross_entropy {} }");
    folder_.Write("t.csv", "a,b,c,d,y\n1,2,3,4,0\n5,6,7,8,1\n");
    folder_.Write("job.textproto", R"(
        model: "model.textproto" global_batch: 6 max_steps: 3
        data { csv { train: "t.csv" test: "t.csv" label_column: "y" } }
        optimizer { sgd {} learning_rate { base: 0.1 } }
        sync { replicas_to_aggregate: 2 } local { ps: 2 workers: 3 })");
  }

  std::vector<std::string> Command() const {
    return {Binary("deploy/cli/up"), "--job=" + folder_.Path("job.textproto"),
            "--bin_dir=" + folder_.path(), "--run_dir=" + folder_.Path("run")};
  }
  const TemporaryFolder& folder() const { return folder_; }
  // Whether no stand-in, nor what it started, is there a moment later.
  bool LeftNothing() const { return WaitForNoneWith(folder_.path(), absl::Seconds(5)); }
  // Whether each stand-in says `text` in its log.
  bool AllSay(const std::string& text) const {
    for (const char* task : {"chief", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2"}) {
      if (!Says(task, text)) return false;
    }
    return true;
  }
  bool Says(const std::string& task, const std::string& text) const {
    return WaitForText(folder_.Path(absl::StrCat("run/logs/", task, ".log")), text,
                       absl::Seconds(10));
  }

 private:
  void Script(const std::string& name, const std::string& body) {
    const std::string path = folder_.Write(name + "/" + name, "#!/bin/sh\n" + body);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  TemporaryFolder folder_;
};

TEST_CASE("a run in which every process ends well exits 0 and shows the summary") {
  const Launch launch({kChiefDone, kUntilDone, "sleep 0.1\n", "sleep 0.1\n", "sleep 0.1\n"});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("trained 3 steps") && Contains("50.00 %"));
  CHECK_THAT(ended.output, Contains("ps/ps --cluster=") && Contains("--task_index=1"));
  CHECK_THAT(launch.folder().Read("run/cluster.json"), Contains("\"worker\""));
  CHECK(launch.LeftNothing());
}

TEST_CASE("the commands that a run prints can be pasted, whatever its folder is called") {
  const Launch launch({kChiefDone, "sleep 1\n", "sleep 0.1\n", "sleep 0.1\n", "sleep 0.1\n"});
  std::vector<std::string> command = launch.Command();
  command[3] = "--run_dir=" + launch.folder().Path("a run");
  for (const char* const file : {"job.token", "tls/"}) {
    const Ended ended = RunToEnd(command, absl::Seconds(20));
    CHECK(ended.exit_code == 0);
    const std::vector<std::string> lines = absl::StrSplit(ended.output, '\n');
    for (const std::string start : {"state: ./lockstep status 127", "end: ./lockstep stop 127"}) {
      const auto line = std::ranges::find_if(
          lines, [&](const std::string& text) { return text.starts_with(start); });
      REQUIRE(line != lines.end());
      CHECK_THAT(*line, Contains(" '--"));
      CHECK_THAT(*line, Contains("/a run/") && Contains(file) && EndsWith("'"));
    }
    command.push_back("--tls");
  }
}

TEST_CASE("evaluations and warnings that no status has shown are shown at the end") {
  const std::string chief =
      "sleep 0.3\nfor a; do case $a in --summary=*) echo '{\"steps\": 200, \"loss\": null, "
      "\"test_accuracy\": 0.039, \"checkpoint\": \"/c/ckpt-200\", \"evaluations\": "
      "[{\"step\": 100, \"examples\": 9, \"accuracy\": 0.25, \"loss\": 7}, "
      "{\"step\": 200, \"examples\": 9, \"accuracy\": 0.039, \"loss\": null}], "
      "\"warnings\": [{\"number\": 1, \"text\": \"the loss of step 2 is not finite\"}]}' "
      ">${a#--summary=};; esac; done\n";
  const Launch launch({chief, kUntilDone, "sleep 0.1\n", "sleep 0.1\n", "sleep 0.1\n"});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("step 100: test accuracy 25.00 %, loss 7.0000, on 9 examples"));
  CHECK_THAT(ended.output, Contains("step 200: test accuracy 3.90 %, loss nan, on 9 examples"));
  CHECK_THAT(ended.output, Contains("warning: the loss of step 2 is not finite"));
  CHECK_THAT(ended.output, Contains("training loss  nan"));
  const size_t last = ended.output.find("warning: training has diverged: the last loss is nan");
  REQUIRE(last != std::string::npos);
  CHECK(ended.output.find('\n', last) == ended.output.size() - 1);
}

TEST_CASE("a run that is done says how to use its model") {
  const std::string chief =
      "sleep 0.3\nfor a; do case $a in --summary=*) echo '{\"steps\": 3, "
      "\"checkpoint\": \"/c/ckpt-3\"}' >${a#--summary=};; esac; done\n";
  const Launch launch({chief, kUntilDone, "sleep 0.1\n", "sleep 0.1\n", "sleep 0.1\n"});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output,
             Contains("To use the model:\n  ./lockstep predict --checkpoint=/c/ckpt-3 --data=" +
                      launch.folder().Path("t.csv")));
}

TEST_CASE("after Ctrl-C the last word is how to go on as before, where something was saved") {
  const Launch launch({});
  launch.folder().Write("saved/LATEST", "ckpt-2\n");
  launch.folder().Write("job.textproto",
                        launch.folder().Read("job.textproto") + " checkpoint { folder: 'saved' }");
  std::vector<std::string> command = launch.Command();
  for (const char* flag : {"--tls", "--worker_devices=cpu,cpu"}) command.emplace_back(flag);
  Process up(command);
  REQUIRE(up.WaitForOutput("state:", absl::Seconds(10)));
  up.Signal(SIGINT);
  CHECK(up.Wait(absl::Seconds(10)) == 130);
  const std::string output = up.Output();
  const std::string stops =
      "stopping: the chief saves and ends the job; Ctrl-C again ends all at once\n";
  const size_t stopping = output.find(stops);
  REQUIRE(stopping != std::string::npos);
  CHECK(output.substr(stopping) ==
        stops + "checkpoint     " + launch.folder().Path("saved/ckpt-2") +
            "\nTo go on from it:\n  ./lockstep up --job=" + launch.folder().Path("job.textproto") +
            " --resume --tls --worker_devices=cpu,cpu\n");
}

TEST_CASE(
    "devices, trials of slow workers and timelines are flags of the workers that they are for") {
  const Launch launch({kChiefDone, kUntilDone, "sleep 0.1\n", "sleep 0.1\n", "sleep 0.1\n"});
  std::vector<std::string> command = launch.Command();
  const std::string folder = launch.folder().Path("new/timelines");
  command.insert(command.end(),
                 {"--timeline_dir=" + folder, "--worker_sleeps=10ms", "--worker_stalls=0,50ms",
                  "--worker_devices=cuda:0,cuda:1", "--gpu_memory_limit=1.5", "--autotune"});
  const Ended ended = RunToEnd(command, absl::Seconds(20));
  CHECK(ended.exit_code == 0);
  CHECK(std::filesystem::is_directory(folder));
  const auto count = [&](const std::string& text) {
    const std::vector<std::string> parts = absl::StrSplit(ended.output, text);
    return parts.size() - 1;
  };
  for (const char* name : {"worker-0", "worker-1", "worker-2"}) {
    CHECK(count(absl::StrCat(" --timeline=", folder, "/", name, ".csv")) == 1);
  }
  CHECK(count(" --device=cuda:0 ") == 2);  // in turn
  CHECK(count(" --device=cuda:1 ") == 1);
  CHECK(count(" --gpu_memory_limit=1.5 ") == 3);
  CHECK(count(" --autotune ") == 3);
  CHECK(count(" --sleep=") == 1);
  CHECK(count(" --stall=") == 2);
  CHECK(count(" --sleep=10ms --stall=0 ") == 1);
  CHECK(count(" --stall=50ms ") == 1);
}

TEST_CASE("the run ends with the code of the process that failed first, and shows its log") {
  const Launch launch({.ps = "echo port in use; exit 138\n"});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 138);
  CHECK_THAT(ended.output, Contains("ended with exit code 138") && Contains("port in use"));
  CHECK(launch.LeftNothing());
}

TEST_CASE("a process that gives up with 138 is started again, and the run goes on") {
  const TemporaryFolder happened;
  const std::string mark = happened.Path("mark");
  const std::string once =
      "[ -e " + mark + " ] || { touch " + mark + "; echo nobody; exit 138; }\n";
  const Launch launch(
      {.chief = "until grep -q again " + mark + "; do sleep 0.05; done\n" + kChiefDone,
       .ps = kUntilDone,
       .worker0 = once + "echo again >>" + mark + "\n",
       .worker1 = "sleep 0.1\n",
       .worker2 = "sleep 0.1\n"});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("worker 0 ended with exit code 138") &&
                               Contains("it is started again; log: "));
  CHECK(launch.LeftNothing());
}

TEST_CASE("a job that its chief was told to end is over, and nothing is started again") {
  const TemporaryFolder happened;
  const std::string worker = happened.Path("worker"), chief = happened.Path("chief");
  // A process that has ended is there until its parent, up, has noticed.
  const auto until_noticed = [](const std::string& pid) {
    return absl::StrCat("until [ -s ", pid, " ] && ! kill -0 $(cat ", pid,
                        ") 2>/dev/null; do sleep 0.05; done\n");
  };
  // The others are not told here, and end by themselves.
  const std::string other = until_noticed(chief);
  const Launch launch(
      {.chief = absl::StrCat("echo $$ >", chief, "\n", until_noticed(worker), "exit 130\n"),
       .ps = other,
       .worker0 = other,
       .worker1 = absl::StrCat("echo $$ >", worker, "\nexit 130\n"),
       .worker2 = other});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(30));
  CHECK(ended.exit_code == 130);
  CHECK_THAT(ended.output, Contains("worker 1 was told to end") &&
                               Contains("chief was told to end") && !Contains("again"));
  CHECK(launch.LeftNothing());
}

TEST_CASE("a second run in the same folder leaves no log of the first") {
  const Launch launch({kChiefDone, kUntilDone, "sleep 0.1\n", "sleep 0.1\n", "sleep 0.1\n"});
  launch.folder().Write("run/logs/worker-3.log", "of four workers");
  launch.folder().Write("run/logs/notes.txt", "of the user");
  CHECK(RunToEnd(launch.Command(), absl::Seconds(20)).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(launch.folder().Path("run/logs/worker-3.log")));
  CHECK(std::filesystem::exists(launch.folder().Path("run/logs/worker-2.log")));
  CHECK(launch.folder().Read("run/logs/notes.txt") == "of the user");
}

TEST_CASE("two runs at once do not write to one folder") {
  const Launch launch({});
  std::filesystem::create_directories(launch.folder().Path("run/logs"));
  Process first(launch.Command());
  REQUIRE(launch.AllSay("tail"));
  const Ended second = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(second.exit_code == 78);
  CHECK_THAT(second.output, Contains("another run writes to this folder") && Contains("Remedy"));
  CHECK(launch.AllSay("tail"));
  first.Signal(SIGINT);
  CHECK(first.Wait(absl::Seconds(20)) == 130);
  CHECK(launch.LeftNothing());
}

TEST_CASE("a link in the place of a log ends the start, and what it points to stays") {
  const Launch launch({});
  const std::string target = launch.folder().Write("target", "precious");
  std::filesystem::create_directories(launch.folder().Path("run/logs"));
  std::filesystem::create_symlink(target, launch.folder().Path("run/logs/worker-1.log"));
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 73);
  CHECK_THAT(ended.output, Contains("run/logs/worker-1.log") && Contains("a symbolic link"));
  CHECK(launch.folder().Read("target") == "precious");
  CHECK(launch.LeftNothing());
}

TEST_CASE("a worker killed in mid-run is reported, and the run goes on") {
  const TemporaryFolder happened;
  const std::string killed = happened.Path("killed");
  // Once: one that is killed again and again ends the run, before a slow chief does.
  const Launch launch({kChiefDone, kUntilDone, "sleep 0.1\n",
                       absl::StrCat("[ -e ", killed, " ] || { : >", killed, "; kill -9 $$; }\n"),
                       "sleep 0.1\n"});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(20));
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("worker 1 ended with signal 9"));
}

TEST_CASE("processes that outlive the job are stopped, and the run fails") {
  const Launch launch({.chief = kChiefDone});
  const Ended ended = RunToEnd(launch.Command(), absl::Seconds(40));
  CHECK(ended.exit_code == 70);
  CHECK_THAT(ended.output, Contains("still running: ps 0, ps 1"));
  CHECK(launch.LeftNothing());
}

TEST_CASE("Ctrl-C at any moment leaves no process behind and exits 130") {
  const Launch launch({});
  std::minstd_rand random(7);
  for (int round = 0; round < 25; ++round) {
    Process up(launch.Command());
    CHECK_FALSE(up.Wait(absl::Milliseconds(random() % 120)));
    up.Signal(SIGINT);
    const std::optional<int> code = up.Wait(absl::Seconds(10));
    INFO("round " << round << ": " << up.Output());
    CHECK(code == 130);
    CHECK(launch.LeftNothing());
  }
}

TEST_CASE("Ctrl-C lets the chief save before the others are told to end") {
  const TemporaryFolder happened;
  const std::string log = happened.Path("log");
  const std::string wait = "echo ready\nwhile :; do sleep 0.05; done\n";
  const Launch launch(
      {.chief = "trap 'sleep 0.3; echo saved >> " + log + "; exit 130' INT\n" + wait,
       .ps = "trap 'echo told >> " + log + "; exit 0' TERM\n" + wait});
  Process up(launch.Command());
  REQUIRE(up.WaitForOutput("state:", absl::Seconds(10)));
  for (const char* task : {"chief", "ps-0", "ps-1"}) REQUIRE(launch.Says(task, "ready"));
  up.Signal(SIGINT);
  CHECK(up.Wait(absl::Seconds(10)) == 130);
  CHECK(happened.Read("log") == "saved\ntold\ntold\n");
  CHECK(launch.LeftNothing());
}

TEST_CASE("a signal that comes twice at once lets the chief save, too") {
  const TemporaryFolder happened;
  const std::string log = happened.Path("log");
  const std::string wait = "echo ready\nwhile :; do sleep 0.05; done\n";
  const Launch launch(
      {.chief = "trap 'sleep 0.3; echo saved >> " + log + "; exit 130' INT\n" + wait});
  Process up(launch.Command());
  REQUIRE(up.WaitForOutput("state:", absl::Seconds(10)));
  REQUIRE(launch.Says("chief", "ready"));
  // Two different ones: the kernel would make one of two equal ones.
  up.Signal(SIGINT);
  up.Signal(SIGTERM);
  CHECK(up.Wait(absl::Seconds(10)).has_value());
  CHECK(happened.Read("log") == "saved\n");
  CHECK(launch.LeftNothing());
}

TEST_CASE("processes that ignore SIGTERM are killed after a while, or by a second Ctrl-C") {
  const std::string stubborn = "trap '' TERM\necho deaf\nwhile :; do sleep 1; done\n";
  const Launch launch({stubborn, stubborn, stubborn, stubborn, stubborn});
  {
    Process up(launch.Command());
    REQUIRE(up.WaitForOutput("state:", absl::Seconds(10)));
    REQUIRE(launch.AllSay("deaf"));
    up.Signal(SIGINT);
    CHECK_FALSE(up.Wait(absl::Seconds(2)));
    up.Signal(SIGINT);
    CHECK(up.Wait(absl::Seconds(2)) == 130);
    CHECK(launch.LeftNothing());
  }
  Process up(launch.Command());
  REQUIRE(up.WaitForOutput("state:", absl::Seconds(10)));
  up.Signal(SIGTERM);
  CHECK(up.Wait(absl::Seconds(10)) == 143);
  CHECK(launch.LeftNothing());
}

TEST_CASE("a launcher that is killed takes its processes with it") {
  const Launch launch({});
  Process up(launch.Command());
  REQUIRE(up.WaitForOutput("state:", absl::Seconds(10)));
  REQUIRE(launch.AllSay(kForever));
  kill(up.pid(), SIGKILL);
  CHECK(up.Wait(absl::Seconds(5)) == 137);
  CHECK(launch.LeftNothing());
}

TEST_CASE("what cannot start is said before anything runs") {
  const Launch launch({});
  std::vector<std::string> command = launch.Command();
  command[2] = "--bin_dir=" + launch.folder().Path("nowhere");
  const Ended no_binaries = RunToEnd(command, absl::Seconds(10));
  CHECK(no_binaries.exit_code == 66);
  CHECK_THAT(no_binaries.output, Contains("cannot start chief") && Contains("Remedy"));

  launch.folder().Write("job.textproto", "model: 'model.textproto' batch_size: 3");
  const Ended bad_job = RunToEnd(launch.Command(), absl::Seconds(10));
  CHECK(bad_job.exit_code == 78);
  CHECK_THAT(bad_job.output, Contains("job.textproto:1") && Contains("batch_size"));
  CHECK(RunToEnd({Binary("deploy/cli/up")}, absl::Seconds(10)).exit_code == 64);
}

}  // namespace
}  // namespace lockstep::test
