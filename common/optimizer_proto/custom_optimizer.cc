#include "common/optimizer_proto/custom_optimizer.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

// Changes before main only.
std::map<std::string, MakeOptimizer>& Registered() {
  static auto* const registered = new std::map<std::string, MakeOptimizer>();
  return *registered;
}

}  // namespace

bool RegisterOptimizer(const std::string& type, MakeOptimizer make) {
  const bool is_new = Registered().emplace(type, make).second;
  LOCKSTEP_CHECK(is_new);
  return is_new;
}

absl::StatusOr<std::unique_ptr<const UpdateRule>> MakeCustomOptimizer(const CustomKind& kind) {
  const auto found = Registered().find(kind.type());
  if (found == Registered().end()) {
    std::string known =
        "sgd {}, momentum {...}, adagrad {}, adadelta {}, rmsprop {}, adam {}, ftrl {}";
    for (const auto& [type, make] : Registered()) {
      absl::StrAppend(&known, ", custom { type: \"", type, "\" }");
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "custom.type: no optimizer is registered as \"", kind.type(), "\". Remedy: use one of ",
        known, ", or link the code that registers it into the chief and every ps"));
  }
  CustomParameters parameters(kind);
  auto rule = found->second(&parameters);
  if (!rule.ok()) return Annotate(rule.status(), "custom.parameters");
  LOCKSTEP_RETURN_IF_ERROR(parameters.Finish());
  return rule;
}

}  // namespace lockstep
