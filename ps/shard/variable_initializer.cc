#include "ps/shard/variable_initializer.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/initial_value.h"
#include "ps/shard/tensor_names.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

const std::string& WholeName(const CatalogEntry& entry) {
  return entry.part.of().empty() ? entry.name : entry.part.of();
}

absl::StatusOr<VariableInitializer> VariableInitializer::Open(const EpochConfig& config) {
  VariableInitializer first(config.seed());
  first.awaits_state_ = config.awaits_state();
  if (!first.awaits_state_ && !config.restore_from().empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(first.checkpoint_, CheckpointReader::Open(config.restore_from()));
  }
  return first;
}

absl::Status VariableInitializer::Fill(const CatalogEntry& entry, MutableTensorView value) const {
  if (awaits_state_) {
    std::ranges::fill(value.bytes(), std::byte{0});
    return absl::OkStatus();
  }
  if (checkpoint_.has_value()) {
    return ReadRows(entry, WholeName(entry), value);
  }
  if (entry.part.of().empty()) {
    FillInitialValue(entry.initializer, seed_, entry.name, value);
  } else {
    FillInitialRows(entry.initializer, seed_, entry.part.of(), entry.whole, entry.part.first_row(),
                    value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> VariableInitializer::Slot(const CatalogEntry& entry, const SlotSpec& spec,
                                                 const Tensor& value,
                                                 std::vector<std::string>* missing) const {
  const std::string name = SlotTensorName(WholeName(entry), spec.name);
  // A job may begin to average on its way, and a variable may have been frozen until now.
  const bool is_saved = checkpoint_.has_value() && checkpoint_->Has(name);
  if (checkpoint_.has_value() && !is_saved) {
    missing->push_back(SlotTensorName(entry.name, spec.name));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor slot, MakeTensor(entry, "slots"));
  if (awaits_state_) {
    slot.FillZero();
  } else if (spec.starts_as_variable && !is_saved) {
    Copy(value.view(), slot.view());
  } else if (is_saved) {
    LOCKSTEP_RETURN_IF_ERROR(ReadRows(entry, name, slot.view()));
  } else if (entry.dtype == DType::kFloat32) {
    std::ranges::fill(slot.as<float>(), spec.initial_value);
  } else {
    std::ranges::fill(slot.as<double>(), spec.initial_value);
  }
  return slot;
}

absl::StatusOr<float> VariableInitializer::Scalar(const std::string& name,
                                                  const ScalarSpec& spec) const {
  float value = spec.initial_value;
  if (checkpoint_.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(
        checkpoint_->ReadInto(name, MutableTensorView{DType::kFloat32, Shape(), &value}));
  }
  return value;
}

// The checkpoint may be of other parts than this shard's, or of none.
absl::Status VariableInitializer::ReadRows(const CatalogEntry& entry, const std::string& whole,
                                           MutableTensorView value) const {
  if (entry.part.of().empty()) return checkpoint_->ReadInto(whole, value);
  return checkpoint_->ReadRows(whole, entry.whole, entry.part.first_row(), value);
}

}  // namespace lockstep::ps
