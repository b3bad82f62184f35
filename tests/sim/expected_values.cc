#include "tests/sim/expected_values.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/sim/gradient.h"

namespace lockstep::sim {

ExpectedValues::ExpectedValues(const SimOptions* options)
    : options_(options), least_(options->quorum_policy == SHRINK ? 1 : options->aggregate) {
  for (const int64_t elements : options->variables) {
    variables_.push_back(
        {.versions = {std::vector<float>(static_cast<size_t>(elements), kInitialValue)}});
  }
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
    variable.versions.push_back(Step(variable.versions.back(), gradient.variable, {gradient}));
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
  const std::vector<float>& expected = variables_[pulled.variable].versions[version];
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
    variable.versions.push_back(
        Step(variable.versions.back(), index, std::move(accepted.mapped())));
  }
  return std::nullopt;
}

std::vector<float> ExpectedValues::Step(const std::vector<float>& values, uint32_t index,
                                        std::vector<Judged> gradients) const {
  std::ranges::stable_sort(gradients, [](const Judged& a, const Judged& b) {
    return std::tie(a.worker, a.push_seq) < std::tie(b.worker, b.push_seq);
  });
  std::vector<float> next = values;
  for (size_t i = 0; i < next.size(); ++i) {
    float sum = 0;
    for (size_t k = 0; k < gradients.size(); ++k) {
      const Judged& gradient = gradients[k];
      const GlobalStep stamp = options_->asynchronous ? GlobalStep() : gradient.stamp;
      const float element =
          GradientOf(gradient.worker, SeedOf(gradient), stamp, index, static_cast<int64_t>(i));
      sum = k == 0 ? element : sum + element;
    }
    next[i] -= sum / static_cast<float>(gradients.size()) * kLearningRate;
  }
  return next;
}

PushSeq ExpectedValues::SeedOf(const Judged& gradient) const {
  return options_->same_every_time ? PushSeq() : gradient.push_seq;
}

std::optional<std::string> ExpectedValues::CompareWithOthers(const Pulled& pulled) {
  const bool is_loss = pulled.variable >= variables_.size();
  const size_t elements = is_loss ? 1 : variables_[pulled.variable].versions[0].size();
  if (pulled.values.size() < elements) return std::nullopt;  // a piece
  const auto [found, is_new] = given_.try_emplace({pulled.version, pulled.variable}, pulled.values);
  if (is_new || found->second == pulled.values) return std::nullopt;
  return absl::StrCat("variable ", pulled.variable, " in version ", pulled.version.value(),
                      " has two values");
}

}  // namespace lockstep::sim
