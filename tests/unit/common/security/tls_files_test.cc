#include "common/security/tls_files.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "tests/support/test_certificates.h"

namespace lockstep::security {
namespace {

constexpr CertificateUse kBoth{.in_calls = true, .serving = true};

void CheckRefused(const TlsFiles& files, absl::string_view expected) {
  const absl::Status status = CheckTlsFiles(files, kBoth).status();
  INFO(status);
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  CHECK(absl::StrContains(status.message(), expected));
  CHECK(absl::StrContains(status.message(), "Remedy: "));
}

TEST_CASE("A certificate with its key and its authority tells its role and its end") {
  test::TestCertificates certificates;
  const TlsFiles files = certificates.Make("worker/3");
  const auto certificate = CheckTlsFiles(files, kBoth);
  REQUIRE(certificate.ok());
  CHECK(certificate->uris == std::vector<std::string>{"spiffe://digits/worker/3"});
  CHECK(certificate->end > absl::Now() + absl::Minutes(59));
  CHECK(certificate->end < absl::Now() + absl::Minutes(61));
  CHECK(CheckAuthorities(certificates.ca()).ok());
}

TEST_CASE("A certificate that others would refuse is refused at the start") {
  test::TestCertificates certificates, strangers;
  const TlsFiles good = certificates.Make("ps/0");
  CheckRefused(certificates.Make("ps/0", -absl::Minutes(1)), "certificate has expired");
  CheckRefused({.certificate = good.certificate, .authorities = strangers.ca()},
               "others would refuse it: ");
  // Of one that serves nobody.
  const TlsFiles caller = certificates.Make("reader", absl::Hours(1), "");
  CheckRefused(caller, "others would refuse it: ");
  CHECK(CheckTlsFiles(caller, {.in_calls = true}).ok());
}

TEST_CASE("A key must be there, of this certificate, without passphrase and for its owner alone") {
  test::TestCertificates certificates;
  TlsFiles files = certificates.Make("ps/0");
  files.key = certificates.Make("ps/0").certificate;
  CheckRefused(files, "is not the key of the certificate in " + files.certificate);
  files.key = certificates.ca();
  CheckRefused(files, "holds no private key");
  files.key = certificates.folder().Write("encrypted.pem",
                                          "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                                          "-----END ENCRYPTED PRIVATE KEY-----\n");
  REQUIRE(::chmod(files.key.c_str(), 0600) == 0);
  CheckRefused(files, "holds no private key, or one with a passphrase");
  files.key.clear();
  REQUIRE(::chmod(files.certificate.c_str(), 0644) == 0);
  const absl::Status status = CheckTlsFiles(files, kBoth).status();
  CHECK(ExitCodeFor(status) == ExitCode::kNotPermitted);
  CHECK(absl::EndsWith(status.message(), "Remedy: chmod 600 " + files.certificate));
}

TEST_CASE("Files that are missing or hold something else are named") {
  test::TestCertificates certificates;
  const TlsFiles good = certificates.Make("ps/0");
  const std::string text = certificates.folder().Write("text", "no certificate\n");
  CheckRefused({.certificate = text, .authorities = good.authorities},
               text + ": holds no certificate");
  CheckRefused({.certificate = good.certificate, .authorities = text},
               text + ": holds no certificate");
  CHECK(absl::IsInvalidArgument(CheckAuthorities(text)));
  const absl::Status missing =
      CheckTlsFiles({.certificate = good.certificate, .authorities = "/none"}, kBoth).status();
  CHECK(ExitCodeFor(missing) == ExitCode::kInputNotFound);
  CHECK(absl::StartsWith(missing.message(), "/none: "));
  CHECK(absl::EndsWith(missing.message(),
                       "Remedy: name a PEM file that exists and that this user may read"));
}

}  // namespace
}  // namespace lockstep::security
