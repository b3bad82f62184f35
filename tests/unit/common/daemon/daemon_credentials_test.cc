#include "common/daemon/daemon_credentials.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "common/client/status_client.h"
#include "common/daemon/running_cluster.h"
#include "common/rpc/server.h"
#include "common/rpc/tls_credentials.h"
#include "common/security/job_token.h"
#include "common/security/secret_file.h"
#include "common/status/status_service.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

ABSL_DECLARE_FLAG(std::string, token_file);
ABSL_DECLARE_FLAG(std::string, tls_cert);
ABSL_DECLARE_FLAG(std::string, tls_ca);

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using security::CallerRole;

constexpr absl::Duration kTimeout = absl::Seconds(10);

std::string SpecText(const std::string& ps) {
  return absl::StrCat(R"({"ps": [")", ps,
                      R"("], "worker": ["127.0.0.1:2"], "chief": ["127.0.0.1:3"]})");
}

// The chief of a cluster whose only ps moves.
struct Chief {
  explicit Chief(const test::TemporaryFolder& of)
      : folder(of),
        task(LoadTask(Role::kChief, folder.Write("cluster.json", SpecText("127.0.0.1:1")), 0,
                      std::nullopt)
                 .value()),
        credentials(DaemonCredentials::Load(task, "127.0.0.1:3").value()),
        cluster(task, false, credentials) {}

  bool MovePs(const std::string& address) {
    folder.Write("cluster.json", SpecText(address));
    return cluster.Reread(/*workers_may_change=*/false).has_value();
  }

  const test::TemporaryFolder& folder;
  const TaskConfig task;
  const DaemonCredentials credentials;
  RunningCluster cluster;
};

TEST_CASE("Without TLS no later cluster spec has the token leave the machine") {
  const absl::FlagSaver saver;
  const test::TemporaryFolder folder;
  const std::string token = folder.Path("job.token");
  REQUIRE(security::WriteSecret(token, security::JobToken::NewText()).ok());
  absl::SetFlag(&FLAGS_token_file, token);
  Chief chief(folder);
  const std::string before = chief.cluster.spec().Canonical();
  CHECK_FALSE(chief.MovePs("192.0.2.1:1"));
  ClusterSpec told = chief.cluster.spec();
  told.ps = {"192.0.2.1:1"};
  CHECK_FALSE(chief.cluster.Adopt(told).has_value());
  CHECK(chief.cluster.spec().Canonical() == before);
  CHECK_THAT(std::string(chief.credentials.Admit(told).message()),
             Contains("would go to 192.0.2.1:1 unencrypted. Remedy: --tls_cert"));
  CHECK(chief.MovePs("127.0.0.1:4"));
}

TEST_CASE("With TLS a task that has moved must prove its role at its new address") {
  const absl::FlagSaver saver;
  test::TestCertificates certificates;
  const auto service = MakeStatusService({.role = "worker", .task = 0, .incarnation = 5}, nullptr);
  const auto server = Server::Start(
      {.address = "127.0.0.1:0",
       .owner = "worker 0",
       .credentials = rpc::MakeTlsCredentials({.files = certificates.Make("worker/0")},
                                              {.role = CallerRole::kWorker, .index = 0})
                          .value(),
       .services = {service.get()}});
  REQUIRE(server.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());

  const security::TlsFiles files = certificates.Make("chief");
  absl::SetFlag(&FLAGS_tls_cert, files.certificate);
  absl::SetFlag(&FLAGS_tls_ca, files.authorities);
  Chief chief(certificates.folder());
  const rpc::Credentials* const credentials = chief.credentials.get().get();
  // Not in the spec: every process of the job will do.
  CHECK(FetchStatus(address, kTimeout, credentials).ok());
  REQUIRE(chief.MovePs(address));
  CHECK_THAT(std::string(FetchStatus(address, kTimeout, credentials).status().message()),
             Contains("the server's certificate is of worker/0, expected ps/0"));
}

}  // namespace
}  // namespace lockstep
