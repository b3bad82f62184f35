#include "deploy/cli/job_certificates.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "common/base/exit_code.h"
#include "common/fs/file_lock.h"
#include "common/security/tls_files.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

using Catch::Matchers::Contains;

const ClusterSpec kCluster = {
    .ps = {"127.0.0.1:1"}, .workers = {"127.0.0.1:2"}, .chief = "127.0.0.1:3"};

struct Fixture {
  absl::Status Make(const std::string& job) const {
    return MakeCertificates(path(), kCluster, job, absl::Hours(1)).status();
  }
  // The names in the certificate of the ps, which the authority must have signed.
  std::vector<std::string> NamesOfPs() const {
    const auto checked = security::CheckTlsFiles(
        {.certificate = CertificatePath(path(), "ps-0"), .authorities = AuthorityPath(path())},
        {.in_calls = true, .serving = true});
    INFO(checked.status());
    REQUIRE(checked.ok());
    return checked->uris;
  }
  std::string path() const { return folder.Path("tls"); }
  std::string Read(const std::string& name) const { return folder.Read("tls/" + name); }

  test::TemporaryFolder folder;
};

using Names = std::vector<std::string>;

void CheckRefused(const absl::Status& status, const std::string& text) {
  INFO(status);
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(status.message()), Contains(text) && Contains("Remedy: "));
}

TEST_CASE("certificates that are made again are of the job of their authority") {
  const Fixture f;
  REQUIRE(f.Make("digits").ok());
  const std::string authority = f.Read("ca.pem"), before = f.Read("ps-0.pem");
  CHECK(f.NamesOfPs() == Names{"spiffe://digits/ps/0"});
  REQUIRE(f.Make("").ok());
  CHECK(f.NamesOfPs() == Names{"spiffe://digits/ps/0"});
  const std::string renewed = f.Read("ps-0.pem");
  CHECK(renewed != before);
  CheckRefused(f.Make("letters"),
               f.path() + "/ca.pem: is the authority of job digits, not letters");
  CHECK(f.Read("ps-0.pem") == renewed);
  CHECK(f.Make("digits").ok());
  CHECK(f.Read("ca.pem") == authority);
}

TEST_CASE("an authority with no room for its job's name is told the name again") {
  const Fixture f;
  const std::string job(60, 'j');
  REQUIRE(f.Make(job).ok());
  CheckRefused(f.Make(""), "/ca.pem: does not say of which job its certificates are");
  CHECK(f.NamesOfPs() == Names{"spiffe://" + job + "/ps/0"});
  CHECK(f.Make(job).ok());
}

TEST_CASE("certificates without a name of a job are of job lockstep") {
  const Fixture f;
  REQUIRE(f.Make("").ok());
  CHECK(f.NamesOfPs() == Names{"spiffe://lockstep/ps/0"});
}

TEST_CASE("an authority whose key has been taken away is not replaced") {
  const Fixture f;
  REQUIRE(f.Make("digits").ok());
  const std::string authority = f.Read("ca.pem"), before = f.Read("ps-0.pem");
  const std::string key = f.path() + "/ca.key", away = f.folder.Path("away.key");
  std::filesystem::rename(key, away);
  CheckRefused(f.Make(""), key + ": the key of the authority in " + f.path() + "/ca.pem is not");
  CHECK(f.Read("ca.pem") == authority);
  CHECK(f.Read("ps-0.pem") == before);
  std::filesystem::rename(away, key);
  CHECK(f.Make("").ok());
}

TEST_CASE("an authority that has its key and no certificate gets one") {
  const Fixture f;
  REQUIRE(f.Make("digits").ok());
  const std::string key = f.Read("ca.key");
  std::filesystem::remove(f.path() + "/ca.pem");
  REQUIRE(f.Make("digits").ok());
  CHECK(f.Read("ca.key") == key);
  CHECK(f.NamesOfPs() == Names{"spiffe://digits/ps/0"});
}

TEST_CASE("of two commands that make certificates in one folder the second is refused") {
  const Fixture f;
  REQUIRE(f.Make("digits").ok());
  const std::string before = f.Read("ps-0.pem");
  {
    const auto other = FileLock::TryAcquire(f.path() + "/LOCK", "another command");
    REQUIRE(other.ok());
    const absl::Status refused = f.Make("digits");
    CHECK(absl::IsAlreadyExists(refused));
    CHECK_THAT(std::string(refused.message()),
               Contains("locked by another command") && Contains("Remedy: "));
    CHECK(f.Read("ps-0.pem") == before);
  }
  CHECK(f.Make("digits").ok());
}

TEST_CASE("a folder in which nothing can be locked is named with a remedy of its own") {
  const Fixture f;
  std::filesystem::create_directories(f.path() + "/LOCK");
  const absl::Status failed = f.Make("digits");
  CHECK_FALSE(absl::IsAlreadyExists(failed));
  CHECK_THAT(std::string(failed.message()),
             Contains(f.path() + "/LOCK") && Contains("Remedy: name a folder where"));
}

TEST_CASE("a folder that cannot be made is named with a remedy") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Path("missing/tls");
  const absl::Status failed = MakeCertificates(path, kCluster, "", absl::Hours(1)).status();
  CHECK_THAT(std::string(failed.message()),
             Contains(path) && Contains("Remedy: make " + folder.Path("missing") + " first"));
}

}  // namespace
}  // namespace lockstep::deploy
