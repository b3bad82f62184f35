// The conventions of CONTRIBUTING.md, checked on the sources as they are.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "tests/layering/package_table.h"
#include "tests/layering/source_tree.h"
#include "tests/layering/type_names.h"

namespace lockstep::layering {
namespace {

const std::vector<std::string> kProduct = {"proto", "common", "ps", "worker", "chief", "deploy"};
const std::vector<std::string> kAll = {"proto", "common", "ps",   "worker",
                                       "chief", "deploy", "tests"};
const std::vector<std::string> kCode = {".h", ".cc", ".cu", ".cuh"};
constexpr int kMostLines = 400;

// One line each, which Catch2 would break.
void CheckNone(const std::vector<std::string>& violations) {
  for (const std::string& violation : violations) std::cerr << violation << "\n";
  CHECK(violations.empty());
}

TEST_CASE("the sources are found") {
  const auto sources = ReadSources(kProduct, kCode);
  CHECK(sources.size() > 100);
  CHECK(std::any_of(sources.begin(), sources.end(), [](const Source& source) {
    return source.path == "common/base/ids.h" && !IncludesOf(source.text).empty();
  }));
}

TEST_CASE("every include is one that the package's row allows") {
  std::vector<std::string> violations;
  const PackageTable table =
      PackageTable::Parse(ReadInput("tests/layering/packages.txt"), &violations);
  for (const Source& source : ReadSources(kProduct, kCode)) {
    for (const std::string& violation : table.Violations(source)) violations.push_back(violation);
  }
  CheckNone(violations);
}

TEST_CASE("packages.txt allows nothing that no source needs") {
  std::vector<std::string> mistakes;
  const PackageTable table =
      PackageTable::Parse(ReadInput("tests/layering/packages.txt"), &mistakes);
  std::vector<Source> sources = ReadSources(kProduct, kCode);
  for (Source& source : ReadSources({"proto"}, {".proto"})) sources.push_back({source.path, ""});
  CheckNone(table.DeadRows(sources));
}

TEST_CASE("every test that the page of faults names is there") {
  const std::string page = ReadInput("docs/faults.md");
  std::set<std::string> paths;
  for (const Source& source : ReadSources({"tests"}, {".cc"})) paths.insert(source.path);
  std::vector<std::string> violations;
  size_t num_named = 0;
  for (size_t at = page.find("`tests/"); at != std::string::npos; at = page.find("`tests/", at)) {
    const size_t end = page.find('`', ++at);
    const std::string path = page.substr(at, end - at);
    ++num_named;
    if (paths.count(path) == 0) violations.push_back("docs/faults.md: there is no " + path);
  }
  CHECK(num_named > 50);
  CheckNone(violations);
}

TEST_CASE("every header is included once") {
  std::vector<std::string> violations;
  for (const Source& source : ReadSources(kAll, {".h", ".cuh"})) {
    if (("\n" + source.text).find("\n#pragma once\n") == std::string::npos)
      violations.push_back(source.path + ":1: no #pragma once");
  }
  CheckNone(violations);
}

TEST_CASE("the types of a header are found with their namespaces") {
  CHECK(TypesOf("namespace lockstep::ps {\n"
                "class Shard;\n"
                "class Shard {\n"
                "  struct Inner {};\n"
                "};\n"
                "struct Empty {};\n"
                "template <typename T>\n"
                "class ABSL_LOCKABLE Lock final : public Base<T> {\n"
                "};\n"
                "}  // namespace lockstep::ps\n"
                "struct Global {\n"
                "};\n") == std::vector<std::string>{"lockstep::ps::Shard", "lockstep::ps::Empty",
                                                    "lockstep::ps::Lock", "::Global"});
}

TEST_CASE("no two headers define types of one name") {
  std::vector<std::string> violations;
  std::map<std::string, std::string> definitions;
  for (const Source& source : ReadSources(kAll, {".h", ".cuh"})) {
    for (const std::string& type : TypesOf(source.text)) {
      const auto [first, is_new] = definitions.emplace(type, source.path);
      if (!is_new) {
        violations.push_back(source.path + ": " + type + " is also defined in " + first->second);
      }
    }
  }
  CHECK(definitions.size() > 500);
  CheckNone(violations);
}

TEST_CASE("no file is longer than a reader can hold") {
  std::vector<std::string> violations;
  for (const Source& source : ReadSources(kAll, kCode)) {
    const auto lines = std::count(source.text.begin(), source.text.end(), '\n');
    if (lines > kMostLines) {
      violations.push_back(source.path + ":" + std::to_string(lines) + ": at most " +
                           std::to_string(kMostLines) + " lines");
    }
  }
  CheckNone(violations);
}

TEST_CASE("no wait is timed by the time of day, which may be set back") {
  std::vector<std::string> violations;
  for (const Source& source : ReadSources(kProduct, kCode)) {
    for (const char* wait : {"WithTimeout(", "WithDeadline("}) {
      size_t at = source.text.find(wait);
      for (; at != std::string::npos; at = source.text.find(wait, at + 1)) {
        const auto line = 1 + std::count(source.text.begin(), source.text.begin() + at, '\n');
        violations.push_back(source.path + ":" + std::to_string(line) + ": abseil's timed waits " +
                             "use the time of day: take common/base/monotonic_wait.h");
      }
    }
  }
  CheckNone(violations);
}

TEST_CASE("no folder is a drawer") {
  std::vector<std::string> violations;
  for (const Source& source : ReadSources(kAll, kCode)) {
    for (const char* drawer : {"/utils/", "/util/", "/helpers/", "/misc/"}) {
      if (("/" + source.path).find(drawer) != std::string::npos)
        violations.push_back(source.path + ":1: " + drawer + " says nothing about what is in it");
    }
  }
  CheckNone(violations);
}

}  // namespace
}  // namespace lockstep::layering
