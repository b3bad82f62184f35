#include "tests/layering/package_table.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace lockstep::layering {
namespace {

constexpr char kLibrary[] = "library ";
constexpr char kPackage[] = "package ";
// Kept from algorithms, allowed everywhere else.
const std::set<std::string> kKeptFromPure = {"threads", "clock"};
const std::set<std::string> kMessages = {"proto", "protobuf", "grpc"};
const std::set<std::string> kTopFolders = {"proto", "common", "ps",   "worker",
                                           "chief", "deploy", "tests"};

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool Matches(const std::string& pattern, const std::string& header) {
  if (pattern.back() == '*') return StartsWith(header, pattern.substr(0, pattern.size() - 1));
  if (pattern.back() == '/') return StartsWith(header, pattern);
  return header == pattern;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool IsOurs(const std::string& header) {
  const size_t slash = header.find('/');
  return slash != std::string::npos && kTopFolders.contains(header.substr(0, slash));
}

}  // namespace

std::vector<Include> IncludesOf(const std::string& text) {
  std::vector<Include> includes;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    char hash = 0, open = 0;
    std::string directive, path;
    // The directive may touch what follows it: #include<x>.
    if (!(words >> hash) || hash != '#') continue;
    for (words >> std::ws; std::isalpha(words.peek());) directive += static_cast<char>(words.get());
    if (directive != "include" || !(words >> open) || (open != '<' && open != '"')) continue;
    std::getline(words, path, open == '<' ? '>' : '"');
    includes.push_back({path, open == '"', number});
  }
  return includes;
}

PackageTable PackageTable::Parse(const std::string& text, std::vector<std::string>* mistakes) {
  PackageTable table;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) {
      mistakes->push_back("no colon in: " + line);
      continue;
    }
    std::istringstream rest(line.substr(colon + 1));
    std::vector<std::string> words;
    for (std::string word; rest >> word;) words.push_back(word);
    table.ParseRow(line.substr(0, colon), words, mistakes);
  }
  return table;
}

void PackageTable::ParseRow(const std::string& head, const std::vector<std::string>& words,
                            std::vector<std::string>* mistakes) {
  if (StartsWith(head, kLibrary)) {
    libraries_.push_back({head.substr(sizeof(kLibrary) - 1), words});
    return;
  }
  if (!StartsWith(head, kPackage)) {
    mistakes->push_back("neither a library nor a package: " + head);
    return;
  }
  const std::string package = head.substr(sizeof(kPackage) - 1);
  Row row;
  for (const std::string& word : words) {
    if (word == "pure") {
      row.pure = true;
      continue;
    }
    const bool library = std::any_of(libraries_.begin(), libraries_.end(),
                                     [&](const Library& known) { return known.name == word; });
    if (!library && !rows_.contains(word))
      mistakes->push_back(package + " names " + word + ", which no row above it has");
    row.may_include.insert(word);
  }
  for (const std::string& message : kMessages) {
    if (row.pure && row.may_include.contains(message))
      mistakes->push_back(package + " is pure and names " + message);
  }
  if (!rows_.emplace(package, row).second) mistakes->push_back(package + " has two rows");
}

std::optional<std::string> PackageTable::PackageOf(const std::string& path) const {
  std::string folder = FolderOf(path);
  if (!rows_.contains(folder)) return std::nullopt;
  return folder;
}

std::set<std::string> PackageTable::Reachable(const std::string& package) const {
  std::set<std::string> reached;
  std::vector<std::string> next = {package, "common/base"};
  while (!next.empty()) {
    const std::string name = next.back();
    next.pop_back();
    if (!reached.insert(name).second || !rows_.contains(name)) continue;
    for (const std::string& named : rows_.at(name).may_include) next.push_back(named);
  }
  return reached;
}

std::optional<std::string> PackageTable::LibraryOf(const std::string& header) const {
  for (const Library& library : libraries_) {
    for (const std::string& pattern : library.patterns)
      if (Matches(pattern, header)) return library.name;
  }
  return std::nullopt;
}

std::set<std::string> PackageTable::NamesNeeded(const std::string& package,
                                                const Include& include) const {
  std::set<std::string> names;
  if (IsOurs(include.path)) {
    const std::string from = FolderOf(include.path);
    if (from != package && from != "common/base") names.insert(from);
    if (EndsWith(include.path, ".grpc.pb.h")) names.insert("grpc");
  } else if (const auto library = LibraryOf(include.path)) {
    if (*library != "system" && !kKeptFromPure.contains(*library)) names.insert(*library);
  }
  return names;
}

std::string PackageTable::Problem(const Row& row, const std::string& package,
                                  const Include& include) const {
  const auto library = LibraryOf(include.path);
  if (library.has_value() && row.pure && kKeptFromPure.contains(*library))
    return "an algorithm without " + *library;
  const bool ours = IsOurs(include.path);
  if (ours && !include.quoted) return "headers of this tree are included with quotes";
  for (const std::string& name : NamesNeeded(package, include)) {
    if (!row.may_include.contains(name)) return package + " may not include " + name;
  }
  if (ours || library.has_value() || StartsWith(include.path, "absl/")) return "";
  if (include.quoted) return "not a path from the root of the tree";
  // The standard library's headers have neither a folder nor an ending.
  if (include.path.find_first_of("./") == std::string::npos) return "";
  return "belongs to no library of packages.txt";
}

std::vector<std::string> PackageTable::Violations(const Source& source) const {
  const auto package = PackageOf(source.path);
  if (!package.has_value())
    return {source.path + ":1: its folder has no row in tests/layering/packages.txt"};
  const Row& row = rows_.at(*package);
  std::vector<std::string> violations;
  for (const Include& include : IncludesOf(source.text)) {
    const std::string problem = Problem(row, *package, include);
    if (problem.empty()) continue;
    violations.push_back(source.path + ":" + std::to_string(include.line) + ": " + include.path +
                         ": " + problem);
  }
  return violations;
}

std::vector<std::string> PackageTable::DeadRows(const std::vector<Source>& sources) const {
  std::map<std::string, std::set<std::string>> needed;
  std::set<std::string> included;
  for (const Source& source : sources) {
    const std::string package = FolderOf(source.path);
    std::set<std::string>& names = needed[package];
    for (const Include& include : IncludesOf(source.text)) {
      names.merge(NamesNeeded(package, include));
      if (const auto library = LibraryOf(include.path)) included.insert(*library);
    }
  }
  std::vector<std::string> dead;
  for (const Library& library : libraries_) {
    if (!included.contains(library.name))
      dead.push_back("library " + library.name + ": no source includes it");
  }
  for (const auto& [package, row] : rows_) {
    if (!needed.contains(package)) {
      dead.push_back("package " + package + ": has no sources");
      continue;
    }
    for (const std::string& name : row.may_include) {
      if (!needed[package].contains(name))
        dead.push_back("package " + package + ": does not include " + name);
    }
  }
  return dead;
}

}  // namespace lockstep::layering
