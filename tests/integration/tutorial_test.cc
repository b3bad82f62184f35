// Follows docs/tutorial.md: writes the files that it shows, runs the commands that it names, as
// they stand, in a folder that looks like a built checkout.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "deploy/cli/ports.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kLimit = absl::Seconds(60);

// A fenced block: its first line's words ("sh", or language and path) and its text.
struct Block {
  std::string info;
  std::string text;
};

std::vector<Block> Blocks(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      absl::StrAppend(&blocks.back().text, line, "\n");
    }
  }
  return blocks;
}

// What a reader has before the first command: a checkout with its binaries built.
void MakeCheckout(const TemporaryFolder& folder) {
  std::filesystem::create_directories(folder.Path("deploy"));
  for (const char* path : {"deploy/examples", "deploy/data"}) {
    std::filesystem::create_symlink(Binary(path), folder.Path(path));
  }
  std::filesystem::create_symlink(Binary(""), folder.Path("bazel-bin"));
  const std::string script = folder.Write("lockstep", R"sh(#!/bin/bash
command=$1; shift
case $command in
up) exec bazel-bin/deploy/cli/up --bin_dir=bazel-bin "$@" ;;
predict | evaluate) exec bazel-bin/worker/predict "$command" "$@" ;;
*) exit 64 ;;
esac
)sh");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
}

TEST_CASE("the tutorial's files are right and its commands work, in order") {
  const TemporaryFolder folder;
  MakeCheckout(folder);
  const auto ports = deploy::PortReservation::Take(4);
  REQUIRE(ports.ok());
  const std::vector<std::string>& addresses = ports->addresses();
  std::string output;
  int files = 0;
  int lines = 0;
  for (const Block& block : Blocks("docs/tutorial.md")) {
    INFO(block.text);
    if (block.info == "sh") {
      const Ended ended = RunToEnd(
          {"/bin/bash", "-euc", absl::StrCat("cd ", folder.path(), "\n", block.text)}, kLimit);
      INFO(ended.output);
      REQUIRE(ended.exit_code == 0);
      absl::StrAppend(&output, ended.output);
      continue;
    }
    const std::string path = block.info.substr(block.info.find(' ') + 1);
    std::string text = block.text;
    for (int i = 0; i < 4; ++i) {
      text = absl::StrReplaceAll(text, {{absl::StrCat("127.0.0.1:", 2221 + i), addresses[i]}});
    }
    folder.Write(path, text);
    ++files;
    lines += std::count(text.begin(), text.end(), '\n');
  }
  CHECK(files == 5);
  CHECK(lines < 50);
  // Both jobs were trained and are good at what they do.
  CHECK_THAT(output, Contains("trained 500 steps") && Contains("trained 300 steps"));
  CHECK_THAT(output, Contains("trained 100 steps (500 to 600)"));
  CHECK_THAT(output, !Contains("the learning rate is 0"));
  int good = 0;
  std::istringstream words(output);
  for (std::string line; std::getline(words, line);) {
    if (!absl::StartsWith(line, "test accuracy ")) continue;
    INFO(line);
    CHECK(std::stod(line.substr(14)) > 90);
    ++good;
  }
  CHECK(good == 3);
  CHECK(ProcessesWith("--cluster=mine/cluster.json").empty());
}

}  // namespace
}  // namespace lockstep::test
