// Certificates for one test, in a folder of its own, from an authority that nobody else knows.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/security/tls_files.h"
#include "deploy/cli/certificate_authority.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

class TestCertificates {
 public:
  explicit TestCertificates(const std::string& job = "digits")
      : authority_(deploy::CertificateAuthority::Open(folder_.path(), job).value()) {}

  std::string ca() const { return folder_.Path("ca.pem"); }
  const TemporaryFolder& folder() const { return folder_; }

  // Makes the certificate of "ps/0", "reader", ... anew, and names its files.
  security::TlsFiles Make(const std::string& caller, absl::Duration validity = absl::Hours(1),
                          const std::string& host = "127.0.0.1") {
    const std::string path = folder_.Path(absl::StrCat(made_++, ".pem"));
    Replace(path, caller, validity, host);
    return {.certificate = path, .authorities = ca()};
  }

  // In place of the certificate in `path`.
  void Replace(const std::string& path, const std::string& caller,
               absl::Duration validity = absl::Hours(1), const std::string& host = "127.0.0.1") {
    std::vector<std::string> hosts;
    if (!host.empty()) hosts.push_back(host);
    REQUIRE(authority_->Issue(security::ParseCaller(caller).value(), hosts, validity, path).ok());
  }

 private:
  const TemporaryFolder folder_;
  const std::unique_ptr<deploy::CertificateAuthority> authority_;
  int made_ = 0;
};

}  // namespace lockstep::test
