// What a chief does when it starts: on nothing, on checkpoints, on ps that have trained, that were
// started again, or that are done; with its exit code and what it says.
#include <signal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/fs/folder.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kForeverSteps = 1'000'000;

// Processes of one cluster, started one by one, with the flags that each test gives them.
struct Parts {
  explicit Parts(int ps, int workers, JobText text) : cluster(ps, workers), job(std::move(text)) {
    job.checkpoint = "folder: '" + folder() + "' " + job.checkpoint;
  }
  std::string folder() const { return cluster.folder().Path("checkpoints"); }
  std::unique_ptr<Process> Ps(int index, const std::vector<std::string>& flags = {}) const {
    return Start(cluster.Ps(index), flags);
  }
  std::unique_ptr<Process> Worker(int index) const { return Start(cluster.Worker(index), {}); }
  std::unique_ptr<Process> Chief(const std::vector<std::string>& flags) const {
    return Start(cluster.Chief(cluster.WriteJob(job)), flags);
  }
  static std::unique_ptr<Process> Start(std::vector<std::string> command,
                                        const std::vector<std::string>& flags) {
    command.insert(command.end(), flags.begin(), flags.end());
    return std::make_unique<Process>(std::move(command));
  }

  Cluster cluster;
  JobText job;
};

// A whole run with these flags, which has to succeed. Returns the chief's log.
std::string Run(const Parts& parts, const std::vector<std::string>& flags) {
  const auto ps = parts.Ps(0);
  const auto worker = parts.Worker(0);
  const auto chief = parts.Chief(flags);
  for (Process* process : {chief.get(), ps.get(), worker.get()}) {
    const auto code = process->Wait(kWhole);
    INFO(process->Output());
    REQUIRE(code == 0);
  }
  return chief->Output();
}

int EndOf(Process& process) {
  const auto code = process.Wait(kWhole);
  INFO(process.Output());
  REQUIRE(code.has_value());
  return *code;
}

std::string Newest(const Parts& parts) {
  const auto found = ResolveCheckpoint(parts.folder());
  return found.ok() ? *found : found.status().ToString();
}

TEST_CASE("one command line of the chief fits every start: --resume begins, goes on and is done") {
  Parts parts(1, 1, {.max_steps = 40});
  CHECK_THAT(Run(parts, {"--resume"}), Contains("training begins at step 0 of 40"));
  // Raised, it goes on.
  parts.job.max_steps = 60;
  const std::string second = Run(parts, {"--resume"});
  CHECK_THAT(second, Contains("restored from " + parts.folder() + "/ckpt-40"));
  CHECK_THAT(second, Contains("the job has changed since the run that it continues: ") &&
                         Contains("max_steps: 40 -> 60"));
  CHECK_THAT(second, Contains("training begins at step 40 of 60"));
  CHECK(Newest(parts) == parts.folder() + "/ckpt-60");
  // Then it is done, whether its processes were started again or not.
  CHECK_THAT(Run(parts, {"--resume"}),
             Contains("the job is done: " + parts.folder() + "/ckpt-60 is of step 60"));
  const auto alone = parts.Chief({"--resume"});
  CHECK(EndOf(*alone) == 0);
}

TEST_CASE("a beginning that would bury checkpoints is refused, and changes nothing") {
  const Parts parts(1, 1, {.max_steps = 40});
  Run(parts, {});
  const auto ps = parts.Ps(0);
  const auto worker = parts.Worker(0);
  const auto chief = parts.Chief({});
  CHECK(EndOf(*chief) == 78);
  CHECK_THAT(chief->Output(), Contains(parts.folder() + "/ckpt-40 is of an earlier run") &&
                                  Contains("--resume") && Contains("--fresh"));
  CHECK(Newest(parts) == parts.folder() + "/ckpt-40");
  CHECK(ps->running());
}

TEST_CASE("--fresh sets the checkpoints of earlier runs aside, so that none of them is resumed") {
  Parts parts(1, 1, {.max_steps = 40});
  Run(parts, {});
  parts.job.max_steps = 30;
  CHECK_THAT(Run(parts, {"--fresh"}), Contains(parts.folder() + "/earlier-1"));
  CHECK(Newest(parts) == parts.folder() + "/ckpt-30");
  CHECK(*ResolveCheckpoint(parts.folder() + "/earlier-1") == parts.folder() + "/earlier-1/ckpt-40");
  CHECK_THAT(Run(parts, {"--resume"}), Contains("ckpt-30 is of step 30"));
}

TEST_CASE("more than one of --resume, --restore and --fresh is a mistake on the command line") {
  const Parts parts(1, 1, {.max_steps = 40});
  for (const std::string other : {"--restore", "--fresh"}) {
    const auto chief = parts.Chief({"--resume", other});
    CHECK(EndOf(*chief) == 64);
    CHECK_THAT(chief->Output(), Contains("Remedy: --resume"));
  }
}

TEST_CASE("a lease that is too short or too long is a mistake on the command line") {
  const Parts parts(1, 1, {.max_steps = 40});
  for (const std::string lease : {"1.9", "86401", "1e300", "nan"}) {
    const auto chief = parts.Chief({"--lease=" + lease});
    CHECK(EndOf(*chief) == 64);
    CHECK_THAT(chief->Output(), Contains("--lease: expected 2 to 86400 seconds, got"));
  }
}

// A job that has saved step 20 and goes on.
struct Running {
  explicit Running(Parts* with) : parts(with) {
    for (int i = 0; i < 2; ++i) ps.push_back(parts->Ps(i));
    for (int i = 0; i < 2; ++i) workers.push_back(parts->Worker(i));
    chief = parts->Chief({});
    const bool has_saved = chief->WaitForOutput("ckpt-20\n", kWhole);
    INFO(chief->Output());
    REQUIRE(has_saved);
  }
  void Kill(Process& process) {
    process.Signal(SIGKILL);
    REQUIRE(process.Wait(kWhole) == 137);
  }
  void KillAll() {
    Kill(*chief);
    for (const auto& process : ps) Kill(*process);
    for (const auto& process : workers) Kill(*process);
  }

  Parts* parts;
  std::vector<std::unique_ptr<Process>> ps;
  std::vector<std::unique_ptr<Process>> workers;
  std::unique_ptr<Process> chief;
};

TEST_CASE("a chief that is started again takes over from ps that have trained") {
  const std::vector<std::string> flags =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--resume"},
               std::vector<std::string>{"--fresh"});
  Parts parts(2, 2, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  Running job(&parts);
  job.Kill(*job.chief);
  parts.job.optimizer = "adam {} learning_rate { base: 0.02 }";
  const auto chief = parts.Chief(flags);
  CHECK(chief->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(chief->Output(), Contains("taking over at step") && !Contains("restored from"));
  CHECK_THAT(chief->Output(), Contains("optimizer.learning_rate.base: 0.01 -> 0.02"));
  CHECK_FALSE(IsFolder(parts.folder() + "/earlier-1"));
}

TEST_CASE("a chief that takes over keeps the characters of the text that the ps were trained on") {
  Parts parts(2, 2,
              {.global_batch = 4, .max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  const auto write = [&parts](const std::string& characters) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += characters[i % characters.size()];
    return parts.cluster.folder().Write("a.txt", text);
  };
  parts.job.data = "text { path: '" + write("abc") + "' length: 4 }";
  parts.job.model =
      "input_shape: 4 layers { name: 'e' embedding { rows: 9 dim: 3 combiner: SEQUENCE } } "
      "layers { name: 'd' dense { units: 9 } } layers { name: 'l' softmax_cross_entropy {} }";
  Running job(&parts);
  job.Kill(*job.chief);
  write("bcb");
  const auto second = parts.Chief({});
  CHECK(second->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(second->Output(), Contains("taking over at step") && !Contains("has changed"));
  job.Kill(*second);
  write("bcd");
  const auto third = parts.Chief({});
  CHECK(EndOf(*third) == 78);
  CHECK_THAT(third->Output(), Contains("a.txt: expected characters of the training that the job "
                                       "goes on from, \"abc\", got \"d\""));
  // It has told nobody: with the text as it was the job goes on.
  write("abc");
  const auto fourth = parts.Chief({});
  CHECK(fourth->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(fourth->Output(), Contains("taking over at step"));
}

TEST_CASE("a chief that the ps refuse leaves them, and the workers, to the next one") {
  Parts parts(2, 2, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  Running job(&parts);
  job.Kill(*job.chief);
  const std::string optimizer = parts.job.optimizer;
  parts.job.optimizer = "sgd {} learning_rate { base: 0.01 }";
  const auto refused = parts.Chief({});
  CHECK(EndOf(*refused) == 78);
  parts.job.optimizer = optimizer;
  const auto chief = parts.Chief({});
  CHECK(chief->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(chief->Output(), Contains("taking over at step"));
  for (const auto& process : job.ps) CHECK(process->running());
  for (const auto& worker : job.workers) CHECK(worker->running());
}

TEST_CASE("where only some ps have trained, a chief that is refused names the flag that helps") {
  Parts parts(2, 2, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  Running job(&parts);
  job.Kill(*job.chief);
  job.Kill(*job.ps[1]);
  const auto successor = parts.Ps(1);
  const auto refused = parts.Chief({});
  CHECK(EndOf(*refused) == 78);
  CHECK_THAT(refused->Output(), Contains("has lost its variables, others are in training. Remedy: "
                                         "start the chief with --resume"));
  const auto chief = parts.Chief({"--resume"});
  CHECK(chief->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(chief->Output(), Contains("restored from "));
  for (const auto& worker : job.workers) CHECK(worker->running());
}

TEST_CASE("--restore names what else there is where ps have trained") {
  Parts parts(2, 2, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  Running job(&parts);
  job.Kill(*job.chief);
  const auto chief = parts.Chief({"--restore"});
  CHECK(EndOf(*chief) == 78);
  CHECK_THAT(chief->Output(),
             Contains("ps 0 (") && Contains("leave out --restore, or give --resume"));
}

TEST_CASE("a cluster that was killed goes on from its newest checkpoint by the same commands") {
  Parts parts(2, 2, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  Running(&parts).KillAll();
  const std::string newest = Newest(parts);
  const auto ps0 = parts.Ps(0);
  const auto ps1 = parts.Ps(1);
  const auto worker0 = parts.Worker(0);
  const auto worker1 = parts.Worker(1);
  const auto chief = parts.Chief({"--resume"});
  CHECK(chief->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(chief->Output(), Contains("restored from " + newest));
}

TEST_CASE("where only some ps have trained, a chief that resumes sets all of them back") {
  Parts parts(2, 2, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  Running job(&parts);
  job.Kill(*job.chief);
  job.Kill(*job.ps[1]);
  const auto successor = parts.Ps(1);
  const auto chief = parts.Chief({"--resume"});
  CHECK(chief->WaitForOutput("training begins at step", kWhole));
  CHECK_THAT(chief->Output(), Contains("restored from "));
  CHECK(job.ps[0]->running());
  CHECK(successor->running());
  for (const auto& worker : job.workers) CHECK(worker->running());
}

TEST_CASE("a ps ends by itself when its chief has been gone for --orphan_timeout") {
  // Nothing is saved: a ps that holds what could not be saved stays.
  Parts parts(2, 2, {.max_steps = kForeverSteps});
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 2; ++i) processes.push_back(parts.Ps(i, {"--orphan_timeout=7"}));
  const auto worker0 = parts.Worker(0);
  const auto worker1 = parts.Worker(1);
  const auto chief = parts.Chief({});
  REQUIRE(chief->WaitForOutput("training begins at step", kWhole));
  CHECK(processes[0]->running());
  chief->Signal(SIGKILL);
  for (const auto& ps : processes) {
    CHECK(EndOf(*ps) == 138);
    CHECK_THAT(ps->Output(), Contains("no chief has called for ") && Contains("--orphan_timeout"));
  }
}

TEST_CASE("a ps that could not save its model stays, however long its chief is gone") {
  const Parts parts(1, 1, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  for (int step = 20; step < 20'000; step += 20) {  // a file is in the way of each
    parts.cluster.folder().Write(absl::StrCat("checkpoints/ckpt-", step), "");
  }
  const auto ps = parts.Ps(0, {"--orphan_timeout=6"});
  const auto worker = parts.Worker(0);
  const auto chief = parts.Chief({});
  REQUIRE(chief->WaitForOutput("no checkpoint at step 20", kWhole));
  chief->Signal(SIGKILL);
  CHECK(ps->WaitForOutput("holds a model that is in no checkpoint", kWhole));
  CHECK(ps->running());
  ps->Signal(SIGTERM);
  CHECK(EndOf(*ps) == 143);
}

TEST_CASE("a ps stays when its file was written and the checkpoint could not be made") {
  const Parts parts(1, 1, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  parts.cluster.folder().Write("checkpoints/LATEST/file", "");  // in the way of LATEST alone
  const auto ps = parts.Ps(0, {"--orphan_timeout=6"});
  const auto worker = parts.Worker(0);
  const auto chief = parts.Chief({"--drain=1"});
  REQUIRE(chief->WaitForOutput("no checkpoint at step 20", kWhole));
  worker->Signal(SIGKILL);  // no gradient is on its way: the ps writes the version that it is at
  chief->Signal(SIGTERM);
  CHECK(EndOf(*chief) == 143);
  CHECK_THAT(chief->Output(), Contains("no checkpoint at step ") && Contains("/LATEST: "));
  CHECK(ps->WaitForOutput("holds a model that is in no checkpoint", kWhole));
  CHECK(ps->running());
  ps->Signal(SIGTERM);
  CHECK(EndOf(*ps) == 143);
}

TEST_CASE("a ps whose model its chief has saved ends when the chief has been gone") {
  const Parts parts(1, 1, {.max_steps = kForeverSteps, .checkpoint = "every_steps: 20"});
  const auto ps = parts.Ps(0, {"--orphan_timeout=6"});
  const auto worker = parts.Worker(0);
  const auto chief = parts.Chief({});
  REQUIRE(chief->WaitForOutput("ckpt-20", kWhole));
  chief->Signal(SIGTERM);  // it saves the last committed step, and tells no ps
  CHECK(EndOf(*chief) == 143);
  CHECK(EndOf(*ps) == 138);
}

TEST_CASE("up starts, refuses, resumes and begins anew by the chief's flags") {
  Parts parts(1, 1, {.max_steps = 40, .more = "local { ps: 1 workers: 1 }"});
  const auto up = [&](std::vector<std::string> flags) {
    std::vector<std::string> command = {
        Binary("deploy/cli/up"), "--job=" + parts.cluster.WriteJob(parts.job),
        "--bin_dir=" + Binary(""), "--run_dir=" + parts.cluster.folder().Path("run")};
    command.insert(command.end(), flags.begin(), flags.end());
    return RunToEnd(command, kWhole);
  };
  CHECK(up({}).exit_code == 0);
  const Ended refused = up({});
  CHECK(refused.exit_code == 78);
  CHECK_THAT(refused.output, Contains("--resume to go on"));
  const Ended done = up({"--resume"});
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Contains("nothing is left to train: ") &&
                              Contains("ckpt-40 is of step 40, the job ends at step 40. Remedy: "
                                       "raise max_steps to train longer"));
  CHECK(up({"--restore"}).exit_code == 78);  // after the last step
  parts.job.max_steps = 50;
  const Ended longer = up({"--restore"});
  INFO(longer.output);
  CHECK(longer.exit_code == 0);
  CHECK_THAT(longer.output, Contains("(40 to 50)"));
  CHECK(up({"--fresh"}).exit_code == 0);
  CHECK(up({"--fresh", "--resume"}).exit_code == 64);
}

}  // namespace
}  // namespace lockstep::test
