// VariableInitializer sets variables, slots and scalars at the start: from a checkpoint, from their
// initializers, or to zeros if a primary sends them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/optimizer/update_rule.h"
#include "ps/shard/catalog.h"
#include "ps/shard/epoch_config.h"

namespace lockstep::ps {

// The variable's name in checkpoints and in the job's file.
const std::string& WholeName(const CatalogEntry& entry);

class VariableInitializer {
 public:
  // The errors of CheckpointReader, here and below.
  static absl::StatusOr<VariableInitializer> Open(const EpochConfig& config);

  absl::Status Fill(const CatalogEntry& entry, MutableTensorView value) const;
  // `value`: the variable's. `missing` gets the name of a slot that the checkpoint lacks.
  absl::StatusOr<Tensor> Slot(const CatalogEntry& entry, const SlotSpec& spec, const Tensor& value,
                              std::vector<std::string>* missing) const;
  // `name`: in a checkpoint.
  absl::StatusOr<float> Scalar(const std::string& name, const ScalarSpec& spec) const;

 private:
  explicit VariableInitializer(uint64_t seed) : seed_(seed) {}
  absl::Status ReadRows(const CatalogEntry& entry, const std::string& whole,
                        MutableTensorView value) const;

  uint64_t seed_;
  bool awaits_state_ = false;
  std::optional<CheckpointReader> checkpoint_;
};

}  // namespace lockstep::ps
