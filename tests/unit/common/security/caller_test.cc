#include "common/security/caller.h"

#include <catch2/catch.hpp>

namespace lockstep::security {
namespace {

TEST_CASE("A caller is written and read as credentials have it") {
  for (const char* name :
       {"chief", "ps", "ps/0", "worker", "worker/0", "worker/4294967295", "reader", "operator"}) {
    CAPTURE(name);
    const auto caller = ParseCaller(name);
    REQUIRE(caller.has_value());
    CHECK(ToString(*caller) == name);
  }
  CHECK(ParseCaller("worker/7") == Caller{.role = CallerRole::kWorker, .index = 7});
}

TEST_CASE("Nothing but its one writing is a caller") {
  for (const char* name : {"", "Chief", "chief/", "chief/0", "reader/1", "worker/", "worker/-1",
                           "worker/01", "worker/+1", "worker/ 1", "worker/4294967296", "worker/1/2",
                           "workers", "worker ", "operator/0", "Operator"}) {
    CAPTURE(name);
    CHECK_FALSE(ParseCaller(name).has_value());
  }
}

}  // namespace
}  // namespace lockstep::security
