// The rules of the house, checked on the sources as they are.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/layering/package_table.h"
#include "tests/layering/source_tree.h"

namespace lockstep::layering {
namespace {

const std::vector<std::string> kProduct = {"proto", "common", "ps", "worker", "chief", "deploy"};
const std::vector<std::string> kAll = {"proto", "common", "ps",   "worker",
                                       "chief", "deploy", "tests"};
const std::vector<std::string> kCode = {".h", ".cc", ".cu", ".cuh"};
constexpr int kMostLines = 400;

PackageTable Table() {
  std::vector<std::string> mistakes;
  PackageTable table = PackageTable::Parse(ReadInput("tests/layering/packages.txt"), &mistakes);
  for (const std::string& mistake : mistakes) FAIL_CHECK("packages.txt: " << mistake);
  return table;
}

TEST_CASE("the sources are found") {
  const auto sources = ReadSources(kProduct, kCode);
  CHECK(sources.size() > 100);
  CHECK(std::any_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.path == "common/base/ids.h" && !IncludesOf(source.text).empty();
  }));
}

TEST_CASE("every include is one that the package's row allows") {
  const PackageTable table = Table();
  for (const Source& source : ReadSources(kProduct, kCode)) {
    for (const std::string& violation : table.Violations(source)) FAIL_CHECK(violation);
  }
}

TEST_CASE("every header is included once") {
  for (const Source& source : ReadSources(kAll, {".h", ".cuh"})) {
    if (("\n" + source.text).find("\n#pragma once\n") == std::string::npos)
      FAIL_CHECK(source.path << ": no #pragma once");
  }
}

TEST_CASE("no file is longer than a reader can hold") {
  for (const Source& source : ReadSources(kAll, kCode)) {
    const auto lines = std::count(source.text.begin(), source.text.end(), '\n');
    if (lines > kMostLines)
      FAIL_CHECK(source.path << ": " << lines << " lines, at most " << kMostLines);
  }
}

TEST_CASE("no folder is a drawer") {
  for (const Source& source : ReadSources(kAll, {".h", ".cc"})) {
    for (const char* drawer : {"/utils/", "/util/", "/helpers/", "/misc/", "/common/common"}) {
      if (("/" + source.path).find(drawer) != std::string::npos)
        FAIL_CHECK(source.path << ": " << drawer << " says nothing about what is in it");
    }
  }
}

}  // namespace
}  // namespace lockstep::layering
