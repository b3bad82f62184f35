#include "common/security/role_uri.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace lockstep::security {
namespace {

TEST_CASE("A role's URI reads back as it was written") {
  for (const RoleUri& role :
       {RoleUri{"digits", {.role = CallerRole::kChief}},
        RoleUri{"a-b_c.9", {.role = CallerRole::kWorker, .index = 4294967295}},
        RoleUri{"j", {.role = CallerRole::kPs}}, RoleUri{"j", {.role = CallerRole::kReader}}}) {
    CAPTURE(ToString(role));
    CHECK(RoleOf({ToString(role)}).value() == role);
  }
  CHECK(ToString(RoleUri{"digits", {.role = CallerRole::kPs, .index = 1}}) ==
        "spiffe://digits/ps/1");
}

TEST_CASE("A certificate with no role, several, or one that is written otherwise proves none") {
  for (const std::vector<std::string>& uris :
       std::vector<std::vector<std::string>>{{},
                                             {"spiffe://digits/ps/1", "spiffe://digits/ps/1"},
                                             {"spiffe://digits/ps/1", "https://example.org"},
                                             {"https://digits/ps/1"},
                                             {"SPIFFE://digits/ps/1"},
                                             {"spiffe://Digits/ps/1"},
                                             {"spiffe:///ps/1"},
                                             {"spiffe://digits"},
                                             {"spiffe://digits/"},
                                             {"spiffe://digits/ps/01"},
                                             {"spiffe://digits/ps/-1"},
                                             {"spiffe://digits/ps/4294967296"},
                                             {"spiffe://digits/ps/1/"},
                                             {"spiffe://digits/ps/1?x"},
                                             {"spiffe://digits/chief/0"},
                                             {"spiffe://digits/admin"},
                                             {std::string("spiffe://digits/ps/1\0", 21)},
                                             {"spiffe://" + std::string(256, 'a') + "/ps/1"},
                                             {"spiffe://digits\n/ps/1"}}) {
    const absl::Status status = RoleOf(uris).status();
    INFO(status);
    CHECK(absl::IsUnauthenticated(status));
    CHECK_FALSE(absl::StrContains(status.message(), "\n"));
    CHECK(status.message().size() < 600);
  }
}

TEST_CASE("A role of another job is refused with both names") {
  const RoleUri role{"digits", {.role = CallerRole::kChief}};
  CHECK(CheckJob(role, "digits").ok());
  const absl::Status status = CheckJob(role, "letters");
  CHECK(absl::IsUnauthenticated(status));
  CHECK(absl::StartsWith(status.message(),
                         "the certificate is of job digits, expected job letters. Remedy: "));
}

TEST_CASE("The name of a job is one that fits into a URI") {
  CHECK(CheckJobName("digits-2.b_c").ok());
  for (const std::string& name :
       {std::string(), std::string("A"), std::string("a/b"), std::string("a b"),
        std::string("\xc3\xa9"), std::string(256, 'a')}) {
    CAPTURE(name);
    CHECK(absl::IsInvalidArgument(CheckJobName(name)));
  }
}

}  // namespace
}  // namespace lockstep::security
