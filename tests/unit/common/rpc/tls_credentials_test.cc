#include "common/rpc/tls_credentials.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/client/status_client.h"
#include "common/rpc/server.h"
#include "common/security/job_token.h"
#include "common/security/secret_file.h"
#include "common/status/status_service.h"
#include "proto/status.grpc.pb.h"
#include "tests/support/server_only_certificate.h"
#include "tests/support/test_certificates.h"

namespace lockstep::rpc {
namespace {

using security::Caller;
using security::CallerRole;
using test::TestCertificates;

using Shared = std::shared_ptr<const Credentials>;

constexpr absl::Duration kTimeout = absl::Seconds(10);

const Caller kPs0{.role = CallerRole::kPs, .index = 0};

// A process that serves its status with TLS.
struct Running {
  explicit Running(Shared of, const std::string& host = "127.0.0.1")
      : credentials(std::move(of)),
        service(MakeStatusService({.role = "ps", .task = 0, .incarnation = 5}, nullptr)),
        server(Server::Start({.address = host + ":0",
                              .owner = "ps 0",
                              .credentials = credentials,
                              .services = {service.get()}})) {
    REQUIRE(server.ok());
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", (*server)->port()); }

  const Shared credentials;
  const std::unique_ptr<Service> service;
  absl::StatusOr<std::unique_ptr<Server>> server;
};

Shared Process(const security::TlsFiles& files, const Caller& self,
               std::shared_ptr<const PeerRoles> peers = nullptr) {
  auto made = MakeTlsCredentials({.files = files, .peers = std::move(peers)}, self);
  INFO(made.status());
  REQUIRE(made.ok());
  return *made;
}

Shared Tool(const security::TlsFiles& files, const std::string& token_file = "") {
  auto made = MakeTlsToolCredentials({.files = files, .token_file = token_file});
  INFO(made.status());
  REQUIRE(made.ok());
  return *made;
}

absl::Status Ask(const Running& of, const Credentials* with) {
  return FetchStatus(of.address(), kTimeout, with).status();
}

TEST_CASE("With certificates of one job processes see each other, beyond loopback too") {
  TestCertificates certificates;
  const Running ps(Process(certificates.Make("ps/0"), kPs0), "0.0.0.0");
  for (const char* const caller : {"chief", "ps/1", "worker/0", "worker", "reader", "operator"}) {
    CAPTURE(caller);
    CHECK(Ask(ps, Tool(certificates.Make(caller)).get()).ok());
  }
}

TEST_CASE("Who cannot prove a role of the job is told what is missing") {
  TestCertificates certificates, letters("letters");
  const security::TlsFiles own = certificates.Make("ps/0");
  const Running ps(Process(own, kPs0));
  const absl::Status plain = Ask(ps, nullptr);
  CHECK(absl::StrContains(plain.message(), "Remedy: if that process has TLS: --tls_ca, and"));
  const absl::Status other = Ask(ps, Tool(letters.Make("chief")).get());
  CHECK(absl::StrContains(other.message(), "certificate verify failed. Remedy: --tls_ca with"));

  // One authority for two jobs: the name of the job counts.
  const std::string both = certificates.folder().Write(
      "both.pem", certificates.folder().Read("ca.pem") + letters.folder().Read("ca.pem"));
  security::TlsFiles files = letters.Make("chief");
  files.authorities = both;
  security::TlsFiles trusting = own;
  trusting.authorities = both;
  const Running open(Process(trusting, kPs0));
  const absl::Status foreign = Ask(open, Tool(files).get());
  INFO(foreign);
  CHECK(absl::StrContains(foreign.message(), "is of job digits, expected job letters"));
}

TEST_CASE("A server must prove the role that its address has in the cluster") {
  TestCertificates certificates;
  const Running ps(Process(certificates.Make("ps/0"), kPs0));
  const auto ask_expecting = [&](const Caller& expected) {
    return Ask(ps, Process(certificates.Make("chief"), {.role = CallerRole::kChief},
                           std::make_shared<PeerRoles>(PeerRoles::Map{{ps.address(), expected}}))
                       .get());
  };
  CHECK(ask_expecting(kPs0).ok());
  const absl::Status status = ask_expecting({.role = CallerRole::kPs, .index = 1});
  CHECK(absl::StrContains(status.message(), "the server's certificate is of ps/0, expected ps/1"));
  // A reader's certificate, in the hands of a process that serves, is no server's.
  CHECK_FALSE(MakeTlsCredentials({.files = certificates.Make("reader")}, kPs0).ok());
}

TEST_CASE("A process starts only with a certificate of its own role, or with a token") {
  TestCertificates certificates;
  const auto refused = [](const TlsOptions& options) {
    const absl::Status status = MakeTlsCredentials(options, kPs0).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  const security::TlsFiles other = certificates.Make("ps/1");
  CHECK(absl::StrContains(refused({.files = other}),
                          "is the certificate of ps/1, this process is ps/0"));
  CHECK(absl::StrContains(refused({.files = {.certificate = other.certificate}}), "--tls_ca"));
  CHECK(absl::StrContains(refused({.files = {.authorities = other.authorities}}), "--tls_cert"));
  CHECK(MakeTlsCredentials({.files = certificates.Make("ps")}, kPs0).ok());

  const std::string token = certificates.folder().Path("job.token");
  REQUIRE(security::WriteSecret(token, security::JobToken::NewText()).ok());
  CHECK(MakeTlsCredentials({.files = other, .token_file = token}, kPs0).ok());
}

TEST_CASE("With a token the role is the credential's, and servers are known by their names") {
  TestCertificates certificates;
  const std::string token = certificates.folder().Path("job.token");
  REQUIRE(security::WriteSecret(token, security::JobToken::NewText()).ok());
  const auto start = [&](const security::TlsFiles& files) {
    return MakeTlsCredentials({.files = files, .token_file = token}, kPs0).value();
  };
  const security::TlsFiles own = certificates.Make("ps/0");
  const Running ps(start(own));
  const security::TlsFiles authorities{.authorities = own.authorities};
  CHECK(Ask(ps, Tool(authorities, token).get()).ok());
  // A certificate alone does not tell its role here.
  CHECK(absl::IsUnauthenticated(Ask(ps, Tool(certificates.Make("chief")).get())));
  const Running elsewhere(start(certificates.Make("ps/0", absl::Hours(1), "ps-0.example")));
  CHECK(absl::IsUnavailable(Ask(elsewhere, Tool(authorities, token).get())));
}

TEST_CASE("A certificate for servers alone will do where a token proves the role") {
  TestCertificates certificates;
  const std::string token = certificates.folder().Path("job.token");
  REQUIRE(security::WriteSecret(token, security::JobToken::NewText()).ok());
  const security::TlsFiles files = test::MakeServerOnly(certificates, "ps/0");
  auto made = MakeTlsCredentials({.files = files, .token_file = token}, kPs0);
  INFO(made.status());
  REQUIRE(made.ok());
  const Running ps(*made);
  CHECK(Ask(ps, Tool({.authorities = files.authorities}, token).get()).ok());
  // Without a token the process shows it in its calls.
  const absl::Status refused = MakeTlsCredentials({.files = files}, kPs0).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "others would refuse it: "));
}

TEST_CASE("Files that are replaced serve the next caller, and break no connection") {
  TestCertificates certificates, next;
  security::TlsFiles files = certificates.Make("ps/0");
  files.authorities =
      certificates.folder().Write("trusted.pem", certificates.folder().Read("ca.pem"));
  const Running ps(MakeTlsCredentials({.files = files, .refresh_seconds = 1}, kPs0).value());
  const Shared reader = Tool(certificates.Make("reader")), later = Tool(next.Make("reader"));
  const auto channel = MakeChannel(ps.address(), reader.get());
  const auto call = [&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
    ProcessStatus reply;
    return StatusService::NewStub(channel)->GetStatus(&context, GetStatusRequest(), &reply).ok();
  };
  REQUIRE(call());
  REQUIRE_FALSE(Ask(ps, later.get()).ok());
  next.Replace(files.certificate, "ps/0");
  certificates.folder().Write("trusted.pem",
                              certificates.folder().Read("ca.pem") + next.folder().Read("ca.pem"));
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  bool is_served = false;
  while (!is_served && absl::Now() < deadline) {
    is_served = Ask(ps, later.get()).ok();
    REQUIRE(call());
  }
  CHECK(is_served);
}

}  // namespace
}  // namespace lockstep::rpc
