#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "tests/oracle/fields.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"
#include "tests/oracle/rules.h"
#include "tests/oracle/trained_variable.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

absl::Status ApplyAlone(const json& entry, bool sparse, DType dtype, float rate, GlobalStep step,
                        TrainedVariable* variable) {
  const std::vector<int64_t> rows = entry.at("indices");
  const Shape shape({static_cast<int64_t>(rows.size()), variable->value().shape.dims()[1]});
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor gradient, TensorOf(dtype, shape, Flatten(entry.at("gradient"))));
  if (sparse) {
    variable->Apply(reference::SparseGradient{.indices = rows, .values = std::move(gradient)}, rate,
                    step);
  } else {
    reference::DenseGradients gradients;
    gradients.gradients.push_back(std::move(gradient));
    variable->Apply(gradients, rate, step);
  }
  return absl::OkStatus();
}

// Compares the variable and its slots, which the script calls so, after each step.
template <typename Compare>
absl::Status ReplayAlone(const json& script, const std::string& optimizer, DType dtype,
                         const std::vector<std::string>& slots, Comparison* comparison,
                         Compare compare) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ShapeIn(script, "shape"));
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor initial, TensorOf(dtype, shape, Flatten(script.at("initial"))));
  LOCKSTEP_ASSIGN_OR_RETURN(auto rule, RuleOf(optimizer, script.at("hyper_parameters")));
  TrainedVariable variable(std::move(rule), {}, std::move(initial));
  GlobalStep step;
  for (const json& entry : script.at("log")) {
    comparison->Enter(static_cast<int>(step.value()));
    LOCKSTEP_RETURN_IF_ERROR(
        ApplyAlone(entry, script.at("sparse"), dtype, script.at("learning_rate"), step, &variable));
    compare("variable", Flatten(entry.at("variable")), ElementsOf(variable.value()));
    for (size_t i = 0; i < slots.size(); ++i) {
      compare(slots[i], Flatten(entry.at(slots[i])), ElementsOf(variable.slot(i)));
    }
    step = step.next();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayFtrl(const json& script, Comparison* comparison) {
  return ReplayAlone(script, "ftrl", DType::kFloat32, {"accum", "linear"}, comparison,
                     [&](const auto& what, const auto& expected, const auto& got) {
                       comparison->Same(what, expected, got);
                     });
}

absl::Status ReplayAdamW(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const DType dtype, DTypeIn(script));
  return ReplayAlone(script, "adamw", dtype, {"m", "v"}, comparison,
                     [&](const auto& what, const auto& expected, const auto& got) {
                       comparison->Near(what, dtype, expected, got);
                     });
}

}  // namespace lockstep::oracle
