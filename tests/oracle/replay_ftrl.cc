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

absl::Status ApplyFtrl(const json& entry, bool sparse, float rate, GlobalStep step,
                       TrainedVariable* variable) {
  const std::vector<int64_t> rows = entry.at("indices");
  const Shape shape({static_cast<int64_t>(rows.size()), variable->value().shape.dims()[1]});
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor gradient,
                            TensorOf(DType::kFloat32, shape, Flatten(entry.at("gradient"))));
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

}  // namespace

absl::Status ReplayFtrl(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ShapeIn(script, "shape"));
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor initial,
                            TensorOf(DType::kFloat32, shape, Flatten(script.at("initial"))));
  LOCKSTEP_ASSIGN_OR_RETURN(auto rule, RuleOf("ftrl", script.at("hyper_parameters")));
  TrainedVariable variable(std::move(rule), {}, std::move(initial));
  GlobalStep step;
  for (const json& entry : script.at("log")) {
    comparison->Enter(static_cast<int>(step.value()));
    LOCKSTEP_RETURN_IF_ERROR(
        ApplyFtrl(entry, script.at("sparse"), script.at("learning_rate"), step, &variable));
    comparison->Same("variable", Flatten(entry.at("variable")), ElementsOf(variable.value()));
    comparison->Same("accum", Flatten(entry.at("accum")), ElementsOf(variable.slot(0)));
    comparison->Same("linear", Flatten(entry.at("linear")), ElementsOf(variable.slot(1)));
    step = step.next();
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
