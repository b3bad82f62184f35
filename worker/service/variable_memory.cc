#include "worker/service/variable_memory.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checked.h"

namespace lockstep::worker {
namespace {

// nullopt: more than can be counted.
using Bytes = std::optional<uint64_t>;

// Of a variable's size, that each holder has.
struct Tensors {
  uint64_t values = 0;
  uint64_t slots = 0;
  uint64_t gradients = 0;
  uint64_t sums = 0;  // of the gradients of all towers of the job

  uint64_t all() const { return values + slots + gradients + sums; }
};

// Of a variable that the ps keep: VariableCache and GradientBuffers.
Tensors CopiedTensors(const WholeVariable& variable, bool values_in_place) {
  if (variable.sparse) return {};
  const bool is_in_place = values_in_place && variable.parts.size() == 1;
  return {.values = is_in_place ? uint64_t{0} : 1, .gradients = variable.frozen ? uint64_t{0} : 1};
}

// Of a variable of a replicated job: Replicas and the memory of a GroupReducer.
Tensors ReplicatedTensors(const WholeVariable& variable, const OptimizerRules& rules) {
  if (variable.frozen) return {.values = 1};
  const UpdateRule& rule = rules.of(variable.name);
  // The next value is written beside the newest one, except for that of a table whose other rows
  // stay. The loss has no next value.
  const bool changes_in_place = variable.sparse && rule.TouchesOnlyRows();
  Tensors tensors{.values = variable.replicated && !changes_in_place ? uint64_t{2} : 1};
  if (variable.trainable) tensors.slots = rule.slots().size();
  if (variable.sparse) return tensors;
  tensors.gradients = 1;
  tensors.sums = variable.trainable ? 1 : 0;
  return tensors;
}

Bytes BytesOf(const WholeVariable& variable, const Tensors& tensors, uint64_t holders) {
  if (tensors.all() == 0) return 0;
  Bytes bytes = static_cast<uint64_t>(variable.shape.num_elements());
  for (const uint64_t factor : {uint64_t{SizeOf(variable.dtype)}, tensors.all(), holders}) {
    if (bytes.has_value()) bytes = CheckedMultiplyBytes(*bytes, factor);
  }
  return bytes;
}

bool IsLess(const Bytes& a, const Bytes& b) { return a.has_value() && (!b.has_value() || *a < *b); }

std::string HowMuch(const Bytes& bytes) {
  return bytes.has_value() ? absl::StrCat(*bytes, " bytes") : "more bytes than can be counted";
}

std::string Describe(const Tensors& tensors, uint64_t holders) {
  std::vector<std::string> parts;
  for (const auto& [count, what] : {std::pair(tensors.values, "values"),
                                    {tensors.slots, "slots"},
                                    {tensors.gradients, "gradients"},
                                    {tensors.sums, "sums of gradients"}}) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", what));
  }
  return absl::StrCat(absl::StrJoin(parts, ", "),
                      holders > 1 ? absl::StrCat(" for each of ", holders, " towers") : "");
}

std::string RemedyFor(const VariableUse& use) {
  const std::string remedy = use.rules == nullptr
                                 ? "use a smaller model"
                                 : "use strategy { parameter_server {} }, with which the ps hold "
                                   "slots and tables";
  return use.holders > 1 ? absl::StrCat("use fewer towers, or ", remedy) : remedy;
}

}  // namespace

MemoryNeed NeedOfVariables(const VariableLayout& layout, const VariableUse& use) {
  Bytes sum = 0;
  Bytes most = 0;
  std::string largest;
  for (const WholeVariable& variable : layout.variables()) {
    const Tensors tensors = use.rules == nullptr ? CopiedTensors(variable, use.values_in_place)
                                                 : ReplicatedTensors(variable, *use.rules);
    const Bytes bytes = BytesOf(variable, tensors, use.holders);
    sum = sum && bytes ? CheckedAddBytes(*sum, *bytes) : std::nullopt;
    if (!IsLess(most, bytes)) continue;
    most = bytes;
    largest = absl::StrCat("\"", variable.name, "\" of shape ", variable.shape.ToString(),
                           ", takes ", HowMuch(bytes), " (", Describe(tensors, use.holders), ")");
  }
  return {.error = absl::StrCat("variables: expected tensors that fit the memory, got ",
                                sum.has_value() ? "at least " : "", HowMuch(sum), "; the largest, ",
                                largest),
          .bytes = sum,
          .remedy = RemedyFor(use)};
}

}  // namespace lockstep::worker
