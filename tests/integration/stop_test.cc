// `lockstep stop` of real jobs: what it says, what is saved, how every process ends.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kEnd = absl::Seconds(20);
constexpr int kForeverSteps = 1'000'000;

// Saves at the end only.
JobText Job(const Cluster& cluster) {
  return {.max_steps = kForeverSteps,
          .checkpoint = absl::StrCat("folder: '", cluster.folder().Path("checkpoints"), "'")};
}

std::vector<std::string> Stop(const std::string& address, const std::string& token_file = "") {
  std::vector<std::string> command = {Binary("deploy/cli/stop"), address};
  if (!token_file.empty()) command.push_back("--token_file=" + token_file);
  return command;
}

std::string CredentialFile(const Cluster& cluster, const std::string& token,
                           const std::string& role) {
  const std::string path = cluster.folder().Path(role + ".token");
  const Ended made =
      RunToEnd({Binary("deploy/cli/token"), path, "--of=" + token, "--role=" + role}, kEnd);
  INFO(made.output);
  REQUIRE(made.exit_code == 0);
  return path;
}

TEST_CASE("an operator's stop in mid-training saves the last committed step and ends everybody") {
  Cluster cluster(2, 2);
  const std::string token = cluster.UseToken();
  const std::string reader = CredentialFile(cluster, token, "reader");
  const std::string who = CredentialFile(cluster, token, "operator");
  const std::string chief = cluster.spec().chief;
  cluster.StartAll(Job(cluster));
  REQUIRE(cluster.WaitForStep(20, kWhole));

  const Ended stranger = RunToEnd(Stop(chief), kEnd);
  CHECK(stranger.exit_code == 77);
  CHECK_THAT(stranger.output, Contains("Remedy: --token_file=FILE"));
  const Ended refused = RunToEnd(Stop(chief, reader), kEnd);
  CHECK(refused.exit_code == 77);
  CHECK_THAT(refused.output, Contains("reader may not call /lockstep.JobControl/Stop") &&
                                 Contains("--role=operator"));
  for (const auto& [address, name] :
       {std::pair(cluster.spec().ps[1], "ps 1"), {cluster.spec().workers[0], "worker 0"}}) {
    const Ended other = RunToEnd(Stop(address, who), kEnd);
    CHECK(other.exit_code == 64);
    CHECK_THAT(other.output,
               Contains(absl::StrCat(address, " is ", name, ", and not the chief. Remedy: ")));
  }
  CHECK(cluster.chief().running());

  const Ended ended = RunToEnd(Stop(chief, who), kEnd);
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK(cluster.chief().Wait(kEnd) == 130);
  for (int i = 0; i < 2; ++i) CHECK(cluster.worker(i).Wait(kEnd) == 130);
  for (int i = 0; i < 2; ++i) CHECK(cluster.ps(i).Wait(kEnd) == 130);
  INFO(cluster.Logs());
  const auto folder = ResolveCheckpoint(cluster.folder().Path("checkpoints"));
  REQUIRE(folder.ok());
  const int64_t step = ReadManifest(*folder)->step;
  CHECK(step > 20);
  CHECK_THAT(ended.output, Contains(": " + *folder + "\n"));

  const Ended late = RunToEnd(Stop(chief, who), kEnd);
  CHECK(late.exit_code == 138);
  CHECK_THAT(late.output, Contains(chief) && Contains("Remedy: if the job runs, "));
}

TEST_CASE("with TLS the certificate of an operator ends the job, and that of a reader does not") {
  Cluster cluster(1, 1);
  cluster.UseTls();
  cluster.StartAll(Job(cluster));
  REQUIRE(cluster.WaitForStep(5, kWhole));
  const auto stop_as = [&](const std::string& role) {
    std::vector<std::string> command = Stop(cluster.spec().chief);
    for (const std::string& flag : cluster.ShownBy(role)) command.push_back(flag);
    return RunToEnd(command, kEnd);
  };
  const Ended refused = stop_as("reader");
  CHECK(refused.exit_code == 77);
  CHECK_THAT(refused.output, Contains("or an operator's certificate"));
  CHECK(cluster.chief().running());
  const Ended ended = stop_as("operator");
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, Contains("checkpoint of step "));
  CHECK(cluster.chief().Wait(kEnd) == 130);
  CHECK(cluster.worker(0).Wait(kEnd) == 130);
}

TEST_CASE("a job that waits for its workers is stopped, by two operators at once") {
  Cluster cluster(1, 1);
  Process ps(cluster.Ps(0));
  Process chief(cluster.Chief(cluster.WriteJob(Job(cluster))));
  REQUIRE(chief.WaitForOutput("variables", kWhole));
  Process first(Stop(cluster.spec().chief));
  Process second(Stop(cluster.spec().chief));
  const auto chief_code = chief.Wait(kEnd);
  CHECK(chief_code == 130);
  CHECK(ps.Wait(kEnd) == 130);
  // One of them may come when the chief has gone.
  const auto one = first.Wait(kEnd), other = second.Wait(kEnd);
  INFO(first.Output() << second.Output() << chief.Output());
  CHECK((one == 0 || other == 0));
  for (const auto& code : {one, other}) CHECK((code == 0 || code == 138));
  CHECK_THAT(first.Output() + second.Output(), Contains("the job has ended at step 0"));
}

TEST_CASE("a job without a checkpoint folder is stopped with a warning") {
  Cluster cluster(1, 1);
  cluster.StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster.WaitForStep(5, kWhole));
  const Ended ended = RunToEnd(Stop(cluster.spec().chief), kEnd);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output,
             Contains("the job has ended at step ") &&
                 Contains("the last step is not saved: the job has no checkpoint folder"));
  CHECK(cluster.chief().Wait(kEnd) == 130);
  CHECK(cluster.worker(0).Wait(kEnd) == 130);
}

TEST_CASE("a launched job prints the command that stops it, and starts nothing again after it") {
  Cluster cluster(1, 1);  // for its folder and its job
  JobText text = Job(cluster);
  text.more = "local { ps: 2 workers: 3 }";
  const std::string run = cluster.folder().Path("run");
  std::filesystem::create_directories(run + "/logs");  // to be watched
  Process up({Binary("deploy/cli/up"), "--job=" + cluster.WriteJob(text), "--bin_dir=" + Binary(""),
              "--run_dir=" + run});
  REQUIRE(WaitForText(run + "/logs/chief.log", " of 1,000,000, loss", kWhole));
  std::vector<std::string> command;
  for (absl::string_view line : absl::StrSplit(up.Output(), '\n')) {
    if (absl::ConsumePrefix(&line, "end: ./lockstep stop ")) command = absl::StrSplit(line, ' ');
  }
  REQUIRE(command.size() == 2);
  command.insert(command.begin(), Binary("deploy/cli/stop"));
  const Ended stop = RunToEnd(command, kEnd);
  INFO(stop.output);
  CHECK(stop.exit_code == 0);
  CHECK_THAT(stop.output, Contains("checkpoint of step "));
  const auto code = up.Wait(kEnd);
  INFO(up.Output());
  CHECK(code == 130);
  CHECK_THAT(up.Output(), !Contains("started again") && !Contains("the last lines of") &&
                              Contains("To go on from it:\n  ./lockstep up --job="));
  CHECK(ProcessesWith(cluster.folder().path()).empty());
}

}  // namespace
}  // namespace lockstep::test
