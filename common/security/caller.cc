#include "common/security/caller.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep::security {
namespace {

constexpr std::pair<CallerRole, absl::string_view> kNames[] = {{CallerRole::kChief, "chief"},
                                                               {CallerRole::kPs, "ps"},
                                                               {CallerRole::kWorker, "worker"},
                                                               {CallerRole::kReader, "reader"},
                                                               {CallerRole::kOperator, "operator"}};

bool HasIndex(CallerRole role) { return role == CallerRole::kPs || role == CallerRole::kWorker; }

}  // namespace

bool Proves(const Caller& shown, const Caller& task) {
  return shown.role == task.role && (!shown.index.has_value() || shown.index == task.index);
}

std::string ToString(const Caller& caller) {
  for (const auto& [role, name] : kNames) {
    if (role != caller.role) continue;
    return caller.index.has_value() ? absl::StrCat(name, "/", *caller.index) : std::string(name);
  }
  return "";
}

std::optional<Caller> ParseCaller(absl::string_view text) {
  for (const auto& [role, name] : kNames) {
    if (text == name) return Caller{.role = role};
    uint32_t index = 0;
    const size_t slash = text.find('/');
    if (slash == absl::string_view::npos || text.substr(0, slash) != name || !HasIndex(role))
      continue;
    const absl::string_view digits = text.substr(slash + 1);
    // One writing of a number alone, so that "worker/1" and "worker/01" are not two names of one.
    if (!absl::SimpleAtoi(digits, &index) || absl::StrCat(index) != digits) return std::nullopt;
    return Caller{.role = role, .index = index};
  }
  return std::nullopt;
}

}  // namespace lockstep::security
