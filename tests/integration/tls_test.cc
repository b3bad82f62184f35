// Jobs over TLS: what `lockstep certificates` makes is enough, and those without it are told why.
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
constexpr int kForeverSteps = 1'000'000;
constexpr absl::Duration kShort = absl::Seconds(20);

std::vector<std::string> With(std::vector<std::string> command, const std::string& flag) {
  command.push_back(flag);
  return command;
}

std::string Status() { return Binary("deploy/cli/status"); }

TEST_CASE("a job trains with TLS, also where sockets carry the tensors") {
  Cluster cluster(2, 2);
  const std::string tls = cluster.UseTls();
  const std::string job = GENERATE("", "transport { shared_memory: OFF }");
  cluster.StartAll({.max_steps = kForeverSteps, .more = job});
  const bool trains = cluster.WaitForStep(5, kWhole);
  INFO(cluster.Logs());
  CHECK(trains);
  const Ended seen =
      RunToEnd({Status(), cluster.spec().chief, absl::StrCat("--tls_ca=", tls, "/ca.pem"),
                absl::StrCat("--tls_cert=", tls, "/reader.pem")},
               kShort);
  CHECK(seen.exit_code == 0);
  CHECK_THAT(seen.output, Contains("chief 0: training"));
  CHECK_THAT(cluster.ps(0).Output(), Contains("TLS with " + tls + "/ps-0.pem, valid until "));
}

TEST_CASE("who has the certificate of another job, another role or none is refused with a reason") {
  Cluster cluster(1, 1), other(1, 1);
  const std::string tls = cluster.UseTls();
  const std::string strange = other.UseTls();
  const std::string job = cluster.WriteJob({.max_steps = 5});
  Process ps(cluster.Ps(0));
  REQUIRE(ps.WaitForOutput("listening", kShort));

  const std::string ca = absl::StrCat("--tls_ca=", tls, "/ca.pem");
  const Ended role =
      RunToEnd(With(cluster.Ps(0), absl::StrCat("--tls_cert=", tls, "/worker-0.pem")), kShort);
  CHECK(role.exit_code == 78);
  CHECK_THAT(role.output, Contains("is the certificate of worker/0, this process is ps/0"));

  const std::string reader = absl::StrCat("--tls_cert=", strange, "/reader.pem");
  const Ended trusting_others = RunToEnd(
      {Status(), cluster.spec().ps[0], absl::StrCat("--tls_ca=", strange, "/ca.pem"), reader},
      kShort);
  CHECK(trusting_others.exit_code == 138);
  CHECK_THAT(trusting_others.output, Contains("certificate verify failed. Remedy: --tls_ca"));

  const std::string both = cluster.folder().Write(
      "both.pem", cluster.folder().Read("tls/ca.pem") + other.folder().Read("tls/ca.pem"));
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--tls_ca=" + both, reader}, std::vector<std::string>{}}) {
    std::vector<std::string> command = {Status(), cluster.spec().ps[0]};
    command.insert(command.end(), flags.begin(), flags.end());
    const Ended refused = RunToEnd(command, kShort);
    CHECK(refused.exit_code == 138);
    CHECK_THAT(refused.output, Contains("Remedy: if that process has TLS: --tls_ca, and"));
  }
  CHECK(ps.WaitForOutput("certificate verify failed", kShort));

  Process real(cluster.Chief(job)), worker(cluster.Worker(0));
  for (Process* process : {&real, &ps, &worker}) {
    const auto code = process->Wait(kWhole);
    INFO(process->Output());
    CHECK(code == 0);
  }
}

TEST_CASE("a token with TLS is enough where certificates name no role") {
  Cluster cluster(1, 1);
  const std::string tls = cluster.UseTls();
  const std::string token = cluster.UseToken();
  const std::string job = cluster.WriteJob({.max_steps = 5});
  Process ps(cluster.Ps(0)), worker(cluster.Worker(0));
  REQUIRE(ps.WaitForOutput("listening", kShort));
  const Ended seen = RunToEnd({Status(), cluster.spec().ps[0], "--token_file", token,
                               absl::StrCat("--tls_ca=", tls, "/ca.pem")},
                              kShort);
  CHECK(seen.exit_code == 0);
  Process chief(cluster.Chief(job));
  for (Process* process : {&chief, &ps, &worker}) {
    const auto code = process->Wait(kWhole);
    INFO(process->Output());
    CHECK(code == 0);
  }
}

TEST_CASE("up encrypts a run with certificates that it makes") {
  Cluster cluster(1, 1);  // for its folder and its job
  const std::string job = cluster.WriteJob({.max_steps = 5, .more = "local { ps: 1 workers: 2 }"});
  const std::string run = cluster.folder().Path("run");
  const Ended up = RunToEnd({Binary("deploy/cli/up"), "--job=" + job, "--bin_dir=" + Binary(""),
                             "--run_dir=" + run, "--tls"},
                            kWhole);
  INFO(up.output);
  CHECK(up.exit_code == 0);
  CHECK_THAT(up.output, Contains("--tls_cert=" + run + "/tls/worker-1.pem"));
  CHECK_THAT(up.output, Contains("--tls_cert=" + run + "/tls/reader.pem"));
  CHECK_THAT(up.output, Contains("end: ./lockstep stop ") && Contains(run + "/tls/operator.pem"));
  CHECK_THAT(cluster.folder().Read("run/logs/ps-0.log"),
             Contains("TLS with " + run + "/tls/ps-0.pem"));
}

}  // namespace
}  // namespace lockstep::test
