#include "tests/oracle/initial_checkpoint.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "ps/shard/tensor_names.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/rules.h"
#include "tests/oracle/trained_variable.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

void DimsOf(const json& nested, std::vector<int64_t>* dims) {
  if (!nested.is_array()) return;
  dims->push_back(static_cast<int64_t>(nested.size()));
  DimsOf(nested.at(0), dims);
}

absl::StatusOr<Tensor> ValueOf(const json& nested) {
  std::vector<int64_t> dims;
  DimsOf(nested, &dims);
  LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return TensorOf(DType::kFloat32, shape, Flatten(nested));
}

// The variables, with all that their optimizer keeps.
absl::StatusOr<std::vector<NamedValue>> TensorsOf(const json& script,
                                                  std::vector<NamedValue> variables) {
  std::vector<NamedValue> tensors;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<const UpdateRule> rule,
                            RuleOf(script.at("optimizer"), script.at("hyper_parameters")));
  for (NamedValue& variable : variables) {
    for (const SlotSpec& slot : rule->slots()) {
      tensors.push_back(
          {ps::SlotTensorName(variable.name, slot.name), InitialSlot(slot, variable.value)});
    }
    tensors.push_back(std::move(variable));
  }
  for (const ScalarSpec& scalar : rule->scalars()) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor value,
                              TensorOf(DType::kFloat32, Shape(), {scalar.initial_value}));
    tensors.push_back({ps::ScalarTensorName("optimizer", scalar.name), std::move(value)});
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::string> WriteInitialCheckpoint(const std::string& root, const json& script) {
  std::vector<NamedValue> variables;
  for (const auto& [name, nested] : script.at("initial").items()) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor value, ValueOf(nested));
    variables.push_back({name, std::move(value)});
  }
  return WriteInitialCheckpoint(root, script, std::move(variables));
}

absl::StatusOr<std::string> WriteInitialCheckpoint(const std::string& root, const json& script,
                                                   std::vector<NamedValue> variables) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<NamedValue> tensors,
                            TensorsOf(script, std::move(variables)));
  std::vector<NamedTensor> named;
  for (const NamedValue& tensor : tensors) named.push_back({tensor.name, tensor.value.view()});
  LOCKSTEP_ASSIGN_OR_RETURN(ShardFile shard,
                            WriteShard(CheckpointFolder(root, 0), 0, 1, std::move(named)));
  Manifest manifest{.optimizer = script.at("optimizer")};
  manifest.shards.push_back(std::move(shard));
  return CommitCheckpoint(root, manifest, /*keep_last=*/0);
}

}  // namespace lockstep::oracle
