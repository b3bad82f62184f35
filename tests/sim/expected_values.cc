#include "tests/sim/expected_values.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/optimizer_proto/update_rule_of.h"
#include "tests/sim/step_mean.h"

namespace lockstep::sim {

ExpectedValues::ExpectedValues(const SimOptions* options)
    : options_(options),
      least_(options->quorum_policy == SHRINK || options->min_replicas > 0 ? 1
                                                                           : options->aggregate),
      rule_(*UpdateRuleOf(options->optimizer)) {
  for (uint32_t i = 0; i < options->variables.size(); ++i) {
    variables_.push_back({.versions = {FirstVersion(i)}});
  }
}

ExpectedValues::Version ExpectedValues::FirstVersion(uint32_t index) const {
  const int64_t elements = options_->variables[index];
  const Shape shape = options_->is_table(index) ? Shape({elements / kRowElements, kRowElements})
                                                : Shape({elements});
  std::vector<Tensor> tensors;
  const auto add = [&](float initial_value) {
    tensors.emplace_back(DType::kFloat32, shape);
    std::ranges::fill(tensors.back().as<float>(), initial_value);
  };
  add(kInitialValue);
  for (const SlotSpec& slot : rule_->slots()) {
    add(slot.starts_as_variable ? kInitialValue : slot.initial_value);
  }
  return std::make_shared<const std::vector<Tensor>>(std::move(tensors));
}

std::optional<ExpectedValues> ExpectedValues::BackAt(GlobalStep step) const {
  const auto version = static_cast<size_t>(step.value());
  ExpectedValues back = *this;
  back.given_.clear();
  for (Variable& variable : back.variables_) {
    if (variable.versions.size() <= version) return std::nullopt;
    variable.versions.resize(version + 1);
    variable.accepted.clear();
  }
  return back;
}

std::optional<std::string> ExpectedValues::Add(const Judged& gradient) {
  // Statistics have no expected values; replicas apply gradients of replicated jobs themselves.
  if (!gradient.accepted || gradient.variable >= variables_.size()) return std::nullopt;
  Variable& variable = variables_[gradient.variable];
  if (options_->asynchronous) {
    const int64_t newest = static_cast<int64_t>(variable.versions.size()) - 1;
    const int64_t staleness = newest - gradient.stamp.value();
    variable.versions.push_back(Step(gradient.variable, {gradient}));
    if (staleness >= 0 && staleness <= options_->max_staleness.value_or(staleness)) {
      return std::nullopt;
    }
    return absl::StrCat("variable ", gradient.variable, " took a gradient of staleness ",
                        staleness);
  }
  if (static_cast<size_t>(gradient.stamp.value()) + 1 < variable.versions.size()) {
    // A copy that has taken the place of its primary says again what that one has said.
    if (variable.counted.contains({gradient.worker, gradient.incarnation, gradient.push_seq})) {
      return std::nullopt;
    }
    return absl::StrCat("variable ", gradient.variable, " accepted a gradient of step ",
                        gradient.stamp.value(), ", which is closed");
  }
  std::vector<Judged>& accepted = variable.accepted[gradient.stamp];
  // A replica that has been counted is told "accepted" again, and not counted again.
  const bool is_counted = options_->token_policy == PER_REPLICA &&
                          std::ranges::any_of(accepted, [&](const Judged& other) {
                            return other.worker == gradient.worker;
                          });
  if (!is_counted) accepted.push_back(gradient);
  return std::nullopt;
}

bool ExpectedValues::Knows(uint32_t variable, GlobalStep version) const {
  const bool has_values = !options_->replicated && variable < variables_.size();
  if (!has_values) return true;
  const Variable& known = variables_[variable];
  if (static_cast<size_t>(version.value()) != known.versions.size()) return true;
  const auto accepted = known.accepted.find(GlobalStep(version.value() - 1));
  return accepted != known.accepted.end() && accepted->second.size() >= least_;
}

std::optional<std::string> ExpectedValues::Compare(const Pulled& pulled) {
  if (options_->replicated) return CompareWithOthers(pulled);
  if (pulled.variable >= variables_.size()) return std::nullopt;
  const auto version = static_cast<size_t>(pulled.version.value());
  if (auto wrong = Make(pulled.variable, version)) return wrong;
  const std::span<const float> expected =
      variables_[pulled.variable].versions[version]->front().as<float>();
  const bool is_right =
      pulled.first + pulled.values.size() <= expected.size() &&
      std::equal(pulled.values.begin(), pulled.values.end(), expected.begin() + pulled.first);
  if (is_right) return std::nullopt;
  return absl::StrCat("variable ", pulled.variable, " in version ", version,
                      " is not what its gradients make");
}

std::optional<std::string> ExpectedValues::TakeOver(uint32_t variable, GlobalStep version) {
  if (variable >= variables_.size()) return std::nullopt;
  auto wrong = Make(variable, static_cast<size_t>(version.value()));
  variables_[variable].accepted.clear();
  return wrong;
}

std::optional<std::string> ExpectedValues::Close(GlobalStep step) {
  if (options_->asynchronous || options_->replicated) return std::nullopt;
  for (uint32_t i = 0; i < variables_.size(); ++i) {
    if (auto wrong = Make(i, static_cast<size_t>(step.value()))) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> ExpectedValues::Make(uint32_t index, size_t version) {
  Variable& variable = variables_[index];
  while (variable.versions.size() <= version) {
    const GlobalStep step(static_cast<int64_t>(variable.versions.size()) - 1);
    if (options_->asynchronous) {
      return absl::StrCat("variable ", index, " has version ", version, ", and only ", step.value(),
                          " gradients were accepted");
    }
    auto accepted = variable.accepted.extract(step);
    const size_t count = accepted.empty() ? 0 : accepted.mapped().size();
    if (count < least_) {
      return absl::StrCat("step ", step.value(), " of variable ", index, " closed with ", count,
                          " gradients");
    }
    for (const Judged& gradient : accepted.mapped()) {
      variable.counted.insert({gradient.worker, gradient.incarnation, gradient.push_seq});
    }
    variable.versions.push_back(Step(index, std::move(accepted.mapped())));
  }
  return std::nullopt;
}

ExpectedValues::Version ExpectedValues::Step(uint32_t index, std::vector<Judged> gradients) const {
  const std::vector<Version>& versions = variables_[index].versions;
  std::vector<Tensor> next;
  for (const Tensor& tensor : *versions.back()) next.push_back(tensor.Clone());
  const MutableTensorView value = next[0].view();
  std::vector<MutableTensorView> slots;
  for (size_t i = 1; i < next.size(); ++i) slots.push_back(next[i].view());
  const std::vector<float> scalars = ScalarsAfter(versions.size() - 1);
  const StepMean mean = MeanOf(*options_, index, value.shape, std::move(gradients));
  const TensorView gradient = mean.values.view();
  const auto version = static_cast<int64_t>(versions.size());
  if (options_->is_table(index)) {
    rule_->ApplyRows({value, mean.rows, gradient, slots, kLearningRate, scalars, version});
  } else {
    rule_->Apply({.old_value = value,
                  .gradients = absl::MakeConstSpan(&gradient, 1),
                  .new_value = value,
                  .slots = slots,
                  .learning_rate = kLearningRate,
                  .scalars = scalars,
                  .version = version});
  }
  return std::make_shared<const std::vector<Tensor>>(std::move(next));
}

std::vector<float> ExpectedValues::ScalarsAfter(size_t steps) const {
  std::vector<float> scalars = InitialScalars(*rule_);
  for (size_t i = 0; i < steps; ++i) rule_->AdvanceScalars(absl::MakeSpan(scalars));
  return scalars;
}

std::optional<std::string> ExpectedValues::CompareWithOthers(const Pulled& pulled) {
  const bool is_loss = pulled.variable >= variables_.size();
  const size_t elements =
      is_loss ? 1 : variables_[pulled.variable].versions[0]->front().as<float>().size();
  if (pulled.values.size() < elements) return std::nullopt;  // a piece
  const auto [found, is_new] = given_.try_emplace({pulled.version, pulled.variable}, pulled.values);
  if (is_new || found->second == pulled.values) return std::nullopt;
  return absl::StrCat("variable ", pulled.variable, " in version ", pulled.version.value(),
                      " has two values");
}

}  // namespace lockstep::sim
