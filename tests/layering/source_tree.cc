#include "tests/layering/source_tree.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace lockstep::layering {
namespace {

namespace fs = std::filesystem;

// Bazel's copy of an input is a link to it.
fs::path Root() {
  const fs::path root =
      fs::canonical("tests/layering/packages.txt").parent_path().parent_path().parent_path();
  if (!fs::exists(root / "WORKSPACE")) {
    std::cerr << root << " is not the root of the sources\n";
    std::abort();
  }
  return root;
}

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<Source> ReadSources(const std::vector<std::string>& folders,
                                const std::vector<std::string>& endings) {
  const fs::path root = Root();
  std::vector<Source> sources;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string ending = entry.path().extension();
      if (!entry.is_regular_file() ||
          std::find(endings.begin(), endings.end(), ending) == endings.end())
        continue;
      sources.push_back({fs::relative(entry.path(), root), Contents(entry.path())});
    }
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return sources;
}

std::string ReadInput(const std::string& path) { return Contents(path); }

}  // namespace lockstep::layering
