#include "common/security/credential_verifier.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::security {
namespace {

const std::string kText = "job:" + std::string(64, '7');

JobToken Token() { return *JobToken::Parse(kText); }

TEST_CASE("A caller that was verified once is verified at each call") {
  const CredentialVerifier verifier(Token());
  const Caller worker{.role = CallerRole::kWorker, .index = 1};
  const std::string credential = Token().CredentialFor(worker);
  std::string forged = credential;
  forged.back() = forged.back() == '0' ? '1' : '0';
  for (int i = 0; i < 3; ++i) {
    CHECK(absl::IsUnauthenticated(verifier.Verify(forged).status()));
    CHECK(absl::IsUnauthenticated(verifier.Verify("worker/1:").status()));
    CHECK(absl::IsUnauthenticated(verifier.Verify("worker/1").status()));
    CHECK(absl::IsUnauthenticated(verifier.Verify("").status()));
    CHECK(verifier.Verify(credential).value() == worker);
  }
}

TEST_CASE("Callers beyond those that are remembered are verified, too") {
  const CredentialVerifier verifier(Token());
  for (uint32_t index = 0; index < 5000; ++index) {
    const Caller worker{.role = CallerRole::kWorker, .index = index};
    const std::string credential = Token().CredentialFor(worker);
    const auto first = verifier.Verify(credential);
    const auto again = verifier.Verify(credential);
    if (first.ok() && again.ok() && *first == worker && *again == worker) continue;
    FAIL(credential);
  }
  CHECK(absl::IsUnauthenticated(verifier.Verify("worker/4999:0").status()));
}

}  // namespace
}  // namespace lockstep::security
