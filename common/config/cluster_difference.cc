#include <algorithm>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/limits.h"
#include "common/config/cluster_spec.h"

namespace lockstep {
namespace {

constexpr int kShown = 3;
constexpr size_t kShownLength = 300;
// Of a peer's text as much is compared as this process's own spec has, and so many bytes more: the
// comparison runs on a thread that serves everybody.
constexpr size_t kMostMore = size_t{64} << 10;

// What stands between the last space and the end of each line, by what stands before it.
std::map<std::string, std::string> ByTask(absl::string_view canonical) {
  std::map<std::string, std::string> tasks;
  for (absl::string_view line : absl::StrSplit(canonical, '\n', absl::SkipEmpty())) {
    const size_t space = std::min(line.rfind(' '), line.size());
    const absl::string_view address = line.substr(std::min(space + 1, line.size()));
    tasks.emplace(absl::CHexEscape(line.substr(0, std::min(space, kShownLength))),
                  absl::CHexEscape(address.substr(0, kShownLength)));
  }
  return tasks;
}

// Of the first line that is `task`, which ends with a space, and an address.
std::optional<std::string> AddressIn(absl::string_view canonical, absl::string_view task) {
  for (absl::string_view line : absl::StrSplit(canonical, '\n')) {
    if (!absl::ConsumePrefix(&line, task) || absl::StrContains(line, ' ')) continue;
    return absl::CHexEscape(line.substr(0, limits::kMaxHostBytes));
  }
  return std::nullopt;
}

}  // namespace

std::string DescribeDifference(absl::string_view canonical_a, absl::string_view canonical_b,
                               absl::string_view name_a, absl::string_view name_b) {
  if (canonical_a == canonical_b) return "";
  const size_t most = canonical_a.size() + kMostMore;
  const bool is_cut = canonical_b.size() > most;
  if (is_cut) canonical_b = canonical_b.substr(0, std::min(canonical_b.rfind('\n', most), most));
  const auto a = ByTask(canonical_a);
  const auto b = ByTask(canonical_b);
  std::vector<std::string> differences;
  for (const auto& [task, address] : a) {
    const auto other = b.find(task);
    if (other == b.end() && is_cut) continue;
    if (other == b.end()) {
      differences.push_back(absl::StrCat(task, " (", address, ") is only in ", name_a));
    } else if (other->second != address) {
      differences.push_back(absl::StrCat(task, " is ", address, " in ", name_a, " and ",
                                         other->second, " in ", name_b));
    }
  }
  for (const auto& [task, address] : b) {
    if (!a.contains(task)) {
      differences.push_back(absl::StrCat(task, " (", address, ") is only in ", name_b));
    }
  }
  if (differences.empty() && is_cut) return absl::StrCat("the text of ", name_b, " is too long");
  if (differences.empty()) return "the order or the repetition of the lines differs";
  std::string text;
  for (size_t i = 0; i < differences.size() && i < kShown; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", differences[i]);
  }
  if (differences.size() > kShown) {
    absl::StrAppend(&text, "; and ", differences.size() - kShown, " more");
  }
  return text;
}

std::optional<std::string> WorkerAddressIn(absl::string_view canonical, uint32_t index) {
  if (index >= limits::kMaxTasks) return std::nullopt;
  return AddressIn(canonical, absl::StrCat("worker ", index, " "));
}

std::optional<std::string> ChiefAddressIn(absl::string_view canonical, uint32_t index) {
  if (index >= limits::kMaxTasks) return std::nullopt;
  return AddressIn(canonical, index == 0 ? "chief " : absl::StrCat("chief ", index, " "));
}

}  // namespace lockstep
