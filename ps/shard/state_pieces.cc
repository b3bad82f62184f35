#include "ps/shard/state_pieces.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "ps/shard/tensor_names.h"

namespace lockstep::ps {
namespace {

// The tensors of a variable follow each other.
absl::StatusOr<size_t> FindTensor(const std::vector<StateTensor>& tensors,
                                  const CatalogEntry& entry, const StoredPiece& piece) {
  auto found = std::ranges::lower_bound(tensors, entry.id, {}, &StateTensor::id);
  for (; found != tensors.end() && found->id == entry.id; ++found) {
    if (found->slot_name == piece.slot) return static_cast<size_t>(found - tensors.begin());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(entry), ": the shard keeps no ",
      piece.slot.empty() ? "value" : absl::StrCat("slot \"", piece.slot, "\""), " of it"));
}

absl::Status CheckBegin(const EpochVariables& variables, const StateArguments& arguments) {
  const GlobalStep start = variables.config.start_step();
  if (arguments.step < start || arguments.step.value() > limits::kMaxStep) {
    return absl::InvalidArgumentError(
        absl::StrCat("state that begins at step ", arguments.step.value(),
                     ": expected a step from ", start.value(), " to ", limits::kMaxStep));
  }
  size_t scalars = 0;
  for (const std::vector<float>& of_loss : variables.start_scalars) scalars += of_loss.size();
  if (arguments.scalars.size() == scalars) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("scalars of the state: expected ", scalars, ", got ", arguments.scalars.size()));
}

}  // namespace

void ForEachStateTensor(
    const EpochVariables& variables,
    absl::FunctionRef<void(size_t variable, std::optional<size_t> slot)> visit) {
  for (size_t i = 0; i < variables.entries.size(); ++i) {
    if (variables.catalog[i].is_replicated) continue;
    visit(i, std::nullopt);
    const size_t num_slots = variables.entries[i]->variable.slots().size();
    for (size_t slot = 0; slot < num_slots; ++slot) visit(i, slot);
  }
}

std::vector<StateTensor> StateTensorsOf(const EpochVariables& variables) {
  std::vector<StateTensor> tensors;
  ForEachStateTensor(variables, [&](size_t variable, std::optional<size_t> slot) {
    const CatalogEntry& entry = variables.catalog[variable];
    const std::string slot_name =
        slot.has_value() ? variables.entries[variable]->rule->slots()[*slot].name : "";
    tensors.push_back({variable, slot, entry.id, slot_name,
                       slot.has_value() ? SlotTensorName(entry.name, slot_name) : entry.name,
                       entry.num_bytes});
  });
  return tensors;
}

absl::StatusOr<uint64_t> AddPiece(const CatalogEntry& entry, const StoredPiece& piece,
                                  uint64_t total) {
  if (piece.offset > entry.num_bytes || piece.size > entry.num_bytes - piece.offset) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": expected bytes in [0, ",
                                                   entry.num_bytes, "), got ", piece.size,
                                                   " bytes from offset ", piece.offset));
  }
  const std::optional<uint64_t> sum = CheckedAddBytes(total, piece.size);
  if (sum.has_value()) return *sum;
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(entry), ": more bytes than can be counted"));
}

absl::StatusOr<std::vector<StateRange>> ResolveState(const EpochVariables& variables,
                                                     const std::vector<StateTensor>& tensors,
                                                     const StateArguments& arguments) {
  if (arguments.begins) LOCKSTEP_RETURN_IF_ERROR(CheckBegin(variables, arguments));
  std::vector<StateRange> ranges;
  uint64_t total = 0;
  for (const StoredPiece& piece : arguments.pieces) {
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t variable, variables.catalog.Find(piece.variable));
    const CatalogEntry& entry = variables.catalog[variable];
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t tensor, FindTensor(tensors, entry, piece));
    LOCKSTEP_ASSIGN_OR_RETURN(total, AddPiece(entry, piece, total));
    ranges.push_back({tensor, piece.offset, piece.size});
  }
  if (total == arguments.tensors.num_bytes()) return ranges;
  return absl::InvalidArgumentError(
      absl::StrCat("state at step ", arguments.step.value(), ": expected ", total,
                   " bytes for its pieces, got ", arguments.tensors.num_bytes()));
}

}  // namespace lockstep::ps
