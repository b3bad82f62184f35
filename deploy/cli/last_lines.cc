#include "deploy/cli/last_lines.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "absl/strings/str_split.h"
#include "common/fs/input_file.h"

namespace lockstep::deploy {
namespace {

constexpr size_t kWindow = 16 << 10;
constexpr size_t kLongestLine = 500;

}  // namespace

std::vector<std::string> LastLines(const std::string& path, int count) {
  const auto file = InputFile::Open(path);
  if (!file.ok()) return {};
  const size_t size = std::min<uint64_t>(file->size(), kWindow);
  std::string end(size, '\0');
  const auto bytes = std::as_writable_bytes(std::span<char>(end));
  if (!file->ReadAt(file->size() - size, bytes).ok()) return {};
  std::vector<std::string> lines = absl::StrSplit(end, '\n');
  if (lines.back().empty()) lines.pop_back();
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - count);
  for (std::string& line : lines) {
    if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + "...";
  }
  return lines;
}

}  // namespace lockstep::deploy
