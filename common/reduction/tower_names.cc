#include "common/reduction/tower_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr absl::string_view kTower = "tower";

// "tower12" of "tower12/fc/kernel"; empty: there is none.
absl::string_view TowerPrefix(absl::string_view name) {
  const size_t end = name.find('/');
  if (end == absl::string_view::npos || end <= kTower.size() || name.substr(0, 5) != kTower) {
    return {};
  }
  for (const char digit : name.substr(kTower.size(), end - kTower.size())) {
    if (!absl::ascii_isdigit(digit)) return {};
  }
  return name.substr(0, end);
}

absl::Status Refused(absl::string_view variable, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the initial sync cannot copy \"", variable,
                                                 "\": ", why,
                                                 ". Remedy: give the layer another name"));
}

}  // namespace

absl::Status CheckTowerName(absl::string_view variable, bool is_trained, int towers) {
  const absl::string_view prefix = TowerPrefix(variable);
  if (towers == 1 || prefix.empty()) return absl::OkStatus();
  const absl::string_view number = prefix.substr(kTower.size());
  const absl::string_view counterpart = variable.substr(prefix.size() + 1);
  if (number.front() == '0') {
    return Refused(variable, "Name should not have prefix 'tower0'");
  }
  int tower = 0;
  if (absl::SimpleAtoi(number, &tower) && tower < towers) {
    return Refused(variable,
                   absl::StrCat("Prefix ", prefix, " appears multiple times in its name, ", prefix,
                                "/", variable, ", on that tower"));
  }
  if (!is_trained) return absl::OkStatus();
  return Refused(variable, absl::StrCat("Cannot find ", counterpart,
                                        ", whose copy it would be on tower ", number));
}

std::string InitialSyncWarning(absl::string_view variable, int towers) {
  const absl::string_view prefix = TowerPrefix(variable);
  if (towers == 1 || prefix.empty()) return "";
  return absl::StrCat("Cannot find ", variable.substr(prefix.size() + 1), ", whose copy \"",
                      variable, "\" would be on tower ", prefix.substr(kTower.size()),
                      ": the initial sync takes it for a variable of the model. Remedy: give the "
                      "layer another name");
}

}  // namespace lockstep
