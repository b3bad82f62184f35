#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
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

// The cells of the rows below "## <heading>", without the blanks around them.
std::vector<std::vector<std::string>> RowsUnder(const std::string& heading) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream page("docs/limits.md");
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) inside = line == "## " + heading;
    if (!inside || !absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells = absl::StrSplit(line.substr(2), " | ");
    cells.back() = cells.back().substr(0, cells.back().rfind(" |"));
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string WithoutBackquotes(const std::string& cell) {
  return absl::StrReplaceAll(cell, {{"`", ""}});
}

// "4,096", "1 KiB".
int64_t NumberInPage(const std::string& text) {
  int64_t number = 0;
  std::smatch match;
  REQUIRE(std::regex_match(text, match, std::regex("([0-9,]+)( KiB| MiB)?")));
  REQUIRE(absl::SimpleAtoi(absl::StrReplaceAll(match[1].str(), {{",", ""}}), &number));
  return number << (match[2] == " KiB" ? 10 : match[2] == " MiB" ? 20 : 0);
}

// What the constant is in this file: "4096", "uint64_t{1} << 20".
int64_t NumberInCode(const std::string& path, const std::string& constant) {
  const std::regex definition(" *(?:static |inline )?constexpr [a-z0-9_]+ " + constant +
                              " = (?:[a-z0-9_]+\\{)?([0-9']+)\\}?(?: << ([0-9]+))?;.*");
  std::ifstream file(path);
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (!std::regex_match(line, match, definition)) continue;
    int64_t number = 0, shift = 0;
    REQUIRE(absl::SimpleAtoi(absl::StrReplaceAll(match[1].str(), {{"'", ""}}), &number));
    REQUIRE((!match[2].matched || absl::SimpleAtoi(match[2].str(), &shift)));
    return number << shift;
  }
  FAIL(path << " has no line that defines " << constant);
  return 0;
}

TEST_CASE("docs/limits.md has the numbers of limits that are beside their code") {
  const auto rows = RowsUnder("Limits beside their code");
  CHECK(rows.size() >= 7);
  for (const std::vector<std::string>& row : rows) {
    CAPTURE(row);
    REQUIRE(row.size() == 6);
    CHECK(NumberInPage(row[3]) ==
          NumberInCode(WithoutBackquotes(row[1]), WithoutBackquotes(row[0])));
  }
}

}  // namespace
}  // namespace lockstep
