#include "common/config/cluster_spec.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/config/address.h"

namespace lockstep {
namespace {

// "ps 3", and the entry of the spec.
std::vector<std::pair<std::string, std::string*>> Entries(ClusterSpec& spec) {
  std::vector<std::pair<std::string, std::string*>> entries = {{"chief", &spec.chief}};
  for (size_t i = 0; i < spec.other_chiefs.size(); ++i) {
    entries.emplace_back(absl::StrCat("chief ", i + 1), &spec.other_chiefs[i]);
  }
  for (size_t i = 0; i < spec.ps.size(); ++i) {
    entries.emplace_back(absl::StrCat("ps ", i), &spec.ps[i]);
  }
  for (size_t i = 0; i < spec.workers.size(); ++i) {
    entries.emplace_back(absl::StrCat("worker ", i), &spec.workers[i]);
  }
  return entries;
}

}  // namespace

absl::string_view Name(Role role) {
  switch (role) {
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
    case Role::kChief:
      return "chief";
  }
  LOCKSTEP_CHECK(false && "a Role outside the enumeration");
  return "";
}

std::string ClusterSpec::Canonical() const {
  ClusterSpec copy = *this;
  std::string text;
  for (const auto& [task, address] : Entries(copy)) {
    absl::StrAppend(&text, task, " ", *address, "\n");
  }
  return text;
}

std::vector<std::string> ClusterSpec::chiefs() const {
  std::vector<std::string> all = {chief};
  all.insert(all.end(), other_chiefs.begin(), other_chiefs.end());
  return all;
}

int ClusterSpec::Count(Role role) const {
  if (role == Role::kChief) return 1 + static_cast<int>(other_chiefs.size());
  return static_cast<int>((role == Role::kPs ? ps : workers).size());
}

const std::string& ClusterSpec::AddressOf(Role role, int index) const {
  LOCKSTEP_CHECK(index >= 0 && index < Count(role));
  if (role == Role::kChief) return index == 0 ? chief : other_chiefs[index - 1];
  return (role == Role::kPs ? ps : workers)[index];
}

absl::Status ValidateCluster(ClusterSpec* spec) {
  for (const auto& [role, tasks] : {std::pair{"ps", &spec->ps}, {"worker", &spec->workers}}) {
    if (tasks->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no ", role, ". Remedy: list at least one address for ", role));
    }
    if (tasks->size() > limits::kMaxTasks) {
      return absl::InvalidArgumentError(absl::StrCat(role, ": expected at most ", limits::kMaxTasks,
                                                     " addresses, got ", tasks->size(),
                                                     ". Remedy: list fewer"));
    }
  }
  if (spec->chief.empty()) {
    return absl::InvalidArgumentError(
        "there is no chief. Remedy: name one, \"chief\": [\"host:port\"] in JSON or TF_CONFIG, "
        "chief: \"host:port\" in a text proto; in a TFJob add a replica of type Chief");
  }
  if (spec->other_chiefs.size() >= limits::kMaxTasks) {
    return absl::InvalidArgumentError(absl::StrCat("chief: expected at most ", limits::kMaxTasks,
                                                   " addresses, got ", spec->Count(Role::kChief),
                                                   ". Remedy: list fewer"));
  }
  absl::flat_hash_map<std::string, std::string> holder;
  for (const auto& [task, text] : Entries(*spec)) {
    const absl::StatusOr<Address> address = ParseAddress(*text);
    if (!address.ok()) return Annotate(address.status(), task);
    *text = address->ToString();
    const auto [other, is_new] = holder.try_emplace(*text, task);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(other->second, " and ", task,
                                                     " have the same address ", *text,
                                                     ". Remedy: give each task its own port"));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
