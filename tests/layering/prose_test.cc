// The documents read well in a terminal and in a review.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <sstream>

#include "tests/layering/source_tree.h"

namespace lockstep::layering {
namespace {

constexpr int kMostColumns = 120;

int Columns(const std::string& line) {
  const auto begins_character = [](char byte) { return (byte & 0xC0) != 0x80; };
  return static_cast<int>(std::count_if(line.begin(), line.end(), begins_character));
}

TEST_CASE("prose is wrapped") {
  int num_lines = 0;
  int num_violations = 0;
  for (const Source& source : ReadSources({"docs", "deploy", "tests"}, {".md"})) {
    std::istringstream lines(source.text);
    bool is_code = false;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const size_t begin = line.find_first_not_of(' ');
      if (begin == std::string::npos) continue;
      if (line.compare(begin, 3, "```") == 0) is_code = !is_code;
      // Rows of a table and messages that are quoted stay on a line.
      if (is_code || line[begin] == '|') continue;
      ++num_lines;
      if (Columns(line) <= kMostColumns) continue;
      std::cerr << source.path << ":" << number << ": at most " << kMostColumns << " columns\n";
      ++num_violations;
    }
  }
  CHECK(num_lines > 1000);
  CHECK(num_violations == 0);
}

}  // namespace
}  // namespace lockstep::layering
