// Processes of a job that share a token: what `up` makes, and what those without it are told.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/security/job_token.h"
#include "common/security/secret_file.h"
#include "tests/integration/cluster.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Seconds(20);

// Of another job, in a file beside the cluster's own.
std::string OtherToken(const Cluster& cluster) {
  const std::string path = cluster.folder().Path("other.token");
  REQUIRE(security::WriteSecret(path, security::JobToken::NewText()).ok());
  return "--token_file=" + path;
}

std::vector<std::string> With(std::vector<std::string> command, const std::string& flag) {
  command.push_back(flag);
  return command;
}

TEST_CASE("who has the token of another job is refused, and both sides say why") {
  Cluster cluster(1, 1);
  cluster.UseToken();
  const std::string other = OtherToken(cluster);
  const std::string job = cluster.WriteJob({.max_steps = 5});
  const char kReason[] = "the credential is none of this job's. Remedy: give every process";
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kShort));

  const Ended chief = RunToEnd(With(cluster.Chief(job), other), kShort);
  CHECK(chief.exit_code == 77);
  CHECK_THAT(chief.output, Contains("chief: ps 0 (" + cluster.spec().ps[0] + "): " + kReason));
  CHECK_THAT(ps.Output(), Contains("refused a call: ") && Contains(kReason));

  const Ended twin = RunToEnd(With(cluster.Ps(0), other), kShort);
  CHECK(twin.exit_code == 138);
  CHECK_THAT(twin.output, Contains("by a task that has another --token_file"));

  // The job begins with the right ones, as if nothing had been.
  Process real(cluster.Chief(job));
  const Ended worker = RunToEnd(With(cluster.Worker(0), other), kShort);
  CHECK(worker.exit_code == 77);
  CHECK_THAT(worker.output, Contains(kReason));
  Process good(cluster.Worker(0));
  for (Process* process : {&real, &ps, &good}) {
    const auto code = process->Wait(kWhole);
    INFO(process->Output());
    CHECK(code == 0);
  }
}

TEST_CASE("a token that would leave the machine ends the process before it listens") {
  Cluster cluster(1, 1);
  cluster.UseToken();
  const std::string address = cluster.spec().ps[0];
  const std::string anywhere = "0.0.0.0" + address.substr(address.rfind(':'));
  const Ended everywhere =
      RunToEnd(With(With(cluster.Ps(0), "--listen=" + anywhere), "--insecure"), kShort);
  CHECK(everywhere.exit_code == 78);
  CHECK_THAT(everywhere.output, Contains(anywhere + " unencrypted") && !Contains("listening"));
  const Ended far = RunToEnd({Binary("deploy/cli/status"), "192.0.2.1:2222",
                              absl::StrCat("--token_file=", cluster.folder().Path("job.token"))},
                             kShort);
  CHECK(far.exit_code == 78);
  CHECK_THAT(far.output, Contains("192.0.2.1:2222 unencrypted"));
}

TEST_CASE("up makes a token for its run, which keeps everybody else out") {
  Cluster cluster(1, 1);  // for its folder and its job
  const std::string job = cluster.WriteJob({.max_steps = 5, .more = "local { ps: 1 workers: 2 }"});
  const std::string run = cluster.folder().Path("run");
  const std::string path = run + "/job.token";
  for (int round = 0; round < 2; ++round) {
    const Ended up = RunToEnd(
        {Binary("deploy/cli/up"), "--job=" + job, "--bin_dir=" + Binary(""), "--run_dir=" + run},
        kWhole);
    INFO(up.output);
    CHECK(up.exit_code == 0);
    CHECK_THAT(up.output, Contains("ps/ps --cluster=") && Contains("--token_file=" + path));
    CHECK_FALSE(Contains("whoever reaches").match(cluster.folder().Read("run/logs/ps-0.log")));
    struct stat info;
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0600);
  }
}

TEST_CASE("status asks with the token, or with the credential of a reader") {
  Cluster cluster(1, 1);
  const std::string token = cluster.UseToken();
  Process ps(cluster.Ps(0));
  const std::string status = Binary("deploy/cli/status"), make = Binary("deploy/cli/token");
  const std::string reader = cluster.folder().Path("reader.token");
  const std::string address = cluster.spec().ps[0];
  CHECK(RunToEnd({make, reader, "--of=" + token}, kShort).exit_code == 0);
  CHECK(RunToEnd({make, reader, "--of=" + token}, kShort).exit_code == 73);
  REQUIRE(ps.WaitForOutput("listening", kShort));
  for (const std::string& file : {token, reader}) {
    const Ended seen = RunToEnd({status, address, "--token_file", file}, kShort);
    CHECK(seen.exit_code == 0);
    CHECK_THAT(seen.output, Contains("ps 0: starting"));
  }
  const Ended stranger = RunToEnd({status, address}, kShort);
  CHECK(stranger.exit_code == 77);
  CHECK_THAT(stranger.output, Contains("the call has no credential. Remedy: --token_file=FILE"));
}

}  // namespace
}  // namespace lockstep::test
