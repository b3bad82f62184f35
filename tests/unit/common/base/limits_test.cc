#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/support/doc_fields.h"

namespace lockstep {
namespace {

TEST_CASE("docs/limits.md has every limit on what a peer sends or holds, and no other") {
  std::set<std::string> limits;
  std::ifstream header("common/base/limits.h");
  const std::regex constant("^inline constexpr [a-z0-9_]+ (k[A-Za-z]+) =.*");
  std::smatch match;
  for (std::string line; std::getline(header, line);) {
    if (std::regex_match(line, match, constant)) limits.insert(match[1]);
  }
  REQUIRE(limits.size() > 20);
  std::set<std::string> documented;
  for (const char* heading : {"Fields of messages", "Calls and what they hold"}) {
    for (const std::string& name : test::DocumentedFields("docs/limits.md", heading)) {
      CAPTURE(name);
      CHECK(documented.insert(name).second);
    }
  }
  CHECK(documented == limits);
}

}  // namespace
}  // namespace lockstep
