#include "worker/strategy/replicated/initial_sync.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"
#include "common/reduction/tower_names.h"

namespace lockstep::worker {

std::string InitialSyncText(const ReplicaState& state, int towers) {
  if (towers == 1) return "";
  size_t slots = 0;
  for (const std::vector<Tensor>& of_variable : state.slots) slots += of_variable.size();
  return absl::StrCat("the initial sync copies ", CountText(state.values.size() - 1, "variable"),
                      " and ", CountText(slots, "slot"), " of tower 0 to ",
                      CountText(towers - 1, "other tower"));
}

std::vector<std::string> InitialSyncWarnings(const VariableLayout& layout, int towers) {
  std::vector<std::string> warnings;
  for (const WholeVariable& variable : layout.variables()) {
    std::string warning = InitialSyncWarning(variable.name, towers);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace lockstep::worker
