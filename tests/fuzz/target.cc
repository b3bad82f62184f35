#include "tests/fuzz/target.h"

#include <map>

#include "absl/strings/ascii.h"
#include "common/base/check.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::fuzz {
namespace {

// Made by the first target, whichever that is.
std::map<std::string, Run, std::less<>>& Targets() {
  static auto* const targets = new std::map<std::string, Run, std::less<>>;
  return *targets;
}

}  // namespace

Target::Target(const char* name, Run run) {
  const bool is_new = Targets().emplace(name, run).second;
  LOCKSTEP_CHECK(is_new);
}

Run FindTarget(absl::string_view name) {
  const auto found = Targets().find(name);
  return found == Targets().end() ? nullptr : found->second;
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const auto& [name, run] : Targets()) names.push_back(name);
  return names;
}

void CheckMessage(const absl::Status& status) {
  if (status.ok()) return;
  LOCKSTEP_CHECK(!status.message().empty());
  for (const char character : status.message()) LOCKSTEP_CHECK(!absl::ascii_iscntrl(character));
}

std::string FileWith(absl::string_view contents) {
  static const test::TemporaryFolder folder;
  return folder.Write("input", std::string(contents));
}

}  // namespace lockstep::fuzz
