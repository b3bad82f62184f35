// The rules of packages.txt.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::layering {

struct Source {
  std::string path;  // from the root of the tree: "ps/step/step.cc"
  std::string text;
};

struct Include {
  std::string path;
  bool quoted = false;
  int line = 0;
};

// The #include lines, where the preprocessor would see one that is not disabled.
std::vector<Include> IncludesOf(const std::string& text);

// Immutable after Parse.
class PackageTable {
 public:
  // Fills `mistakes` with a line per thing in the text that makes no sense: a name that no row
  // above has, a row that comes twice, a pure package that names messages or gRPC.
  static PackageTable Parse(const std::string& text, std::vector<std::string>* mistakes);

  // A line "<path>:<line>: ..." for each include of the source that its row does not allow.
  std::vector<std::string> Violations(const Source& source) const;

  // A line for each row without sources or includes, and for each name of a row that its sources do
  // not need.
  std::vector<std::string> DeadRows(const std::vector<Source>& sources) const;

  // The packages and libraries that can be in a program whose main is in `package`: what the rows
  // name, followed to the end, and common/base.
  std::set<std::string> Reachable(const std::string& package) const;

  // The package whose row covers a file; nullopt: no row does.
  std::optional<std::string> PackageOf(const std::string& path) const;

 private:
  struct Row {
    bool pure = false;
    std::set<std::string> may_include;
  };
  struct Library {
    std::string name;
    std::vector<std::string> patterns;
  };
  void ParseRow(const std::string& head, const std::vector<std::string>& words,
                std::vector<std::string>* mistakes);
  std::optional<std::string> LibraryOf(const std::string& header) const;
  // What the row of `package` must name to allow the include.
  std::set<std::string> NamesNeeded(const std::string& package, const Include& include) const;
  // Why the include is not allowed; empty: it is.
  std::string Problem(const Row& row, const std::string& package, const Include& include) const;

  std::vector<Library> libraries_;
  std::map<std::string, Row> rows_;
};

}  // namespace lockstep::layering
