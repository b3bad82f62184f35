#include "common/base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/cgroups.h"

namespace lockstep {
namespace {

using Bytes = std::optional<uint64_t>;

enum class Of { kLeft, kAll };

// Names of the files of a group, by the second version of control groups or by the first.
struct GroupFiles {
  std::vector<const char*> limits;  // "max" in one of them: no limit
  const char* usage;
  // Lines of memory.stat: clean pages of files, which the system drops to make room.
  std::vector<absl::string_view> reclaimable;
};

const GroupFiles& FilesOf(bool is_unified) {
  // Beyond memory.high a process is not ended, but slowed down to a near standstill.
  static const GroupFiles unified = {
      {"/memory.max", "/memory.high"}, "/memory.current", {"inactive_file", "active_file"}};
  // "total_": with the groups inside, as in the usage.
  static const GroupFiles first = {{"/memory.limit_in_bytes"},
                                   "/memory.usage_in_bytes",
                                   {"total_inactive_file", "total_active_file"}};
  return is_unified ? unified : first;
}

Bytes Lesser(Bytes a, Bytes b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

Bytes NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  uint64_t number = 0;
  if (!std::getline(file, line) || !absl::SimpleAtoi(line, &number)) return std::nullopt;
  return number;
}

uint64_t Reclaimable(const std::string& stat_path, const GroupFiles& files) {
  uint64_t sum = 0;
  std::ifstream stat(stat_path);
  for (std::string line; std::getline(stat, line);) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    uint64_t bytes = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[1], &bytes)) continue;
    if (std::ranges::find(files.reclaimable, words[0]) != files.reclaimable.end()) sum += bytes;
  }
  return sum;
}

// What the limits of one group leave or allow; nullopt: it has none.
Bytes AllowedIn(const std::string& group, bool is_unified, Of of) {
  const GroupFiles& files = FilesOf(is_unified);
  Bytes limit;
  for (const char* name : files.limits) limit = Lesser(limit, NumberIn(group + name));
  if (!limit || of == Of::kAll) return limit;
  const uint64_t used = NumberIn(group + files.usage).value_or(0);
  const uint64_t kept = used - std::min(used, Reclaimable(group + "/memory.stat", files));
  return *limit - std::min(*limit, kept);
}

Bytes OnMachine(const std::string& root, Of of) {
  const char* const name = of == Of::kLeft ? "MemAvailable:" : "MemTotal:";
  std::ifstream info(absl::StrCat(root, "/proc/meminfo"));
  for (std::string line; std::getline(info, line);) {
    absl::string_view text = line;
    if (!absl::ConsumePrefix(&text, name) || !absl::ConsumeSuffix(&text, "kB")) continue;
    uint64_t kilobytes = 0;
    if (absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &kilobytes)) return kilobytes * 1024;
  }
  return std::nullopt;
}

Bytes Memory(const std::string& root, Of of) {
  Bytes least = OnMachine(root, of);
  VisitCgroups(root, "memory", [&](const std::string& group, bool is_unified) {
    least = Lesser(least, AllowedIn(group, is_unified, of));
  });
  return least;
}

}  // namespace

std::optional<uint64_t> AvailableMemory() { return AvailableMemory(""); }
std::optional<uint64_t> MemoryLimit() { return MemoryLimit(""); }

std::optional<uint64_t> AvailableMemory(const std::string& root) { return Memory(root, Of::kLeft); }
std::optional<uint64_t> MemoryLimit(const std::string& root) { return Memory(root, Of::kAll); }

}  // namespace lockstep
