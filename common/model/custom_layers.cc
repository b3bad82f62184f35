#include "common/model/custom_layers.h"

#include <utility>

#include "absl/container/btree_map.h"
#include "common/base/check.h"

namespace lockstep {
namespace {

using Rules = absl::btree_map<std::string, CustomLayerRule>;

Rules& AllRules() {
  static auto* const rules = new Rules();
  return *rules;
}

}  // namespace

void AddCustomLayer(std::string type, CustomLayerRule rule) {
  LOCKSTEP_CHECK(AllRules().emplace(std::move(type), rule).second);
}

CustomLayerRule FindCustomLayer(absl::string_view type) {
  const auto found = AllRules().find(type);
  return found == AllRules().end() ? nullptr : found->second;
}

std::vector<std::string> CustomLayerTypes() {
  std::vector<std::string> types;
  for (const auto& [type, rule] : AllRules()) types.push_back(type);
  return types;
}

}  // namespace lockstep
