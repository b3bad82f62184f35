// Replays the inputs that are checked in: examples of each kind, and every one that a fuzzer has
// found something with.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = "tests/fuzz/corpus";

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("no input of the corpora ends a reader") {
  for (const std::string& name : TargetNames()) {
    INFO(name);
    int inputs = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus / name)) {
      INFO(entry.path().string());
      const std::string input = Contents(entry.path());
      FindTarget(name)(input);
      // Each one cut short, too, in twenty places.
      for (size_t i = 0; i < 20; ++i) FindTarget(name)(input.substr(0, input.size() * i / 20));
      ++inputs;
    }
    CHECK(inputs > 0);
  }
}

TEST_CASE("every corpus has a target") {
  const std::vector<std::string> names = TargetNames();
  CHECK(names.size() >= 14);
  std::set<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus)) {
    folders.insert(entry.path().filename().string());
  }
  CHECK(folders == std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace lockstep::fuzz
