#include "common/security/job_token.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace lockstep::security {
namespace {

const std::string kText = "job:" + std::string(64, '0');
const Caller kWorker1{.role = CallerRole::kWorker, .index = 1};

JobToken Token(const std::string& text = kText) {
  const auto token = JobToken::Parse(text);
  REQUIRE(token.ok());
  return *token;
}

TEST_CASE("A credential is the HMAC-SHA256 of the caller's name") {
  // Python: hmac.new(bytes(32), b"worker/1", "sha256").hexdigest()
  CHECK(Token().CredentialFor(kWorker1) ==
        "worker/1:10354f38c999f5f0431897d03211247965c8fd7a46a234e35f64b5929298680b");
}

TEST_CASE("A credential proves its caller to processes of the same job alone") {
  const JobToken token = Token(JobToken::NewText());
  const std::string credential = token.CredentialFor(kWorker1);
  CHECK(token.Verify(credential).value() == kWorker1);
  CHECK(absl::IsUnauthenticated(Token(JobToken::NewText()).Verify(credential).status()));
  for (const std::string& forged :
       {std::string(), std::string(":"), std::string("worker/1"), std::string("worker/1:"),
        absl::StrReplaceAll(credential, {{"worker/1", "worker/2"}}),
        absl::StrReplaceAll(credential, {{"worker/1", "chief"}}),
        absl::StrReplaceAll(credential, {{"worker/1", "worker/01"}}), credential + "0",
        credential.substr(0, credential.size() - 1), kText, std::string(100'000, 'a')}) {
    CAPTURE(forged);
    CHECK(absl::IsUnauthenticated(token.Verify(forged).status()));
  }
}

TEST_CASE("Tokens are random, and read as they are written") {
  std::set<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.insert(JobToken::NewText());
  CHECK(texts.size() == 100);
  for (const std::string& text : texts) CHECK(JobToken::Parse(text).ok());
}

TEST_CASE("A text that is no token is refused without being shown") {
  const std::string digits(64, 'a');
  for (const std::string& text : {std::string(), digits, std::string("job:"), "job:" + digits + "a",
                                  "job:" + digits.substr(1), "job: " + digits, "JOB:" + digits,
                                  "job:" + std::string(64, 'g'), "reader:" + digits}) {
    CAPTURE(text);
    const auto token = JobToken::Parse(text);
    REQUIRE(absl::IsInvalidArgument(token.status()));
    CHECK(absl::StrContains(token.status().message(), "./lockstep token FILE"));
    CHECK_FALSE(absl::StrContains(token.status().message(), "aaa"));
  }
}

}  // namespace
}  // namespace lockstep::security
