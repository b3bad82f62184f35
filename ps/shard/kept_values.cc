#include "ps/shard/kept_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "ps/shard/read_values.h"

namespace lockstep::ps {
namespace {

// For messages: peers may ask for any version.
int64_t StepBefore(GlobalStep version) { return SaturatingSubtract(version.value(), 1); }

absl::StatusOr<PullResult> ReadAverages(const EpochVariables& variables,
                                        const std::shared_ptr<const Snapshot>& kept,
                                        GlobalStep version,
                                        const std::vector<ResolvedPiece>& pieces) {
  if (kept == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("averages of version ", version.value(),
                                                      ": it is not kept; the grant of step ",
                                                      StepBefore(version), " must ask for that"));
  }
  return ReadValues(variables, version, pieces, [&](const ResolvedPiece& piece) {
    const KeptTensor& average = kept->averages[piece.variable];
    return average.is_there() ? average : kept->values[piece.variable];
  });
}

// Where among the slots of a variable the one of this name is. INVALID_ARGUMENT: there is none.
absl::StatusOr<size_t> FindSlot(const EpochVariables& variables, size_t variable,
                                const std::string& name) {
  const VariableEntry& hosted = *variables.entries[variable];
  const absl::Span<const SlotSpec> slots = hosted.rule->slots();
  for (size_t i = 0; i < hosted.variable.slots().size(); ++i) {
    if (slots[i].name == name) return i;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(variables.catalog[variable]), ": it has no slot \"", name, "\""));
}

// slot_of(variable, index) is the tensor to read.
template <typename SlotOf>
absl::StatusOr<PullResult> ReadSlots(const EpochVariables& variables, GlobalStep version,
                                     const std::string& slot,
                                     const std::vector<ResolvedPiece>& pieces, SlotOf slot_of) {
  std::vector<size_t> indices;
  for (const ResolvedPiece& piece : pieces) {
    LOCKSTEP_ASSIGN_OR_RETURN(indices.emplace_back(), FindSlot(variables, piece.variable, slot));
  }
  auto index = indices.begin();
  return ReadValues(variables, version, pieces,
                    [&](const ResolvedPiece& piece) { return slot_of(piece.variable, *index++); });
}

absl::StatusOr<PullResult> ReadSlot(const EpochVariables& variables,
                                    const std::shared_ptr<const Snapshot>& kept, GlobalStep version,
                                    const std::string& slot,
                                    const std::vector<ResolvedPiece>& pieces) {
  if (kept == nullptr || !kept->has_slots) {
    return absl::FailedPreconditionError(absl::StrCat(
        "slot \"", slot, "\" of version ", version.value(), ": it is not kept; the grant of step ",
        StepBefore(version), " must ask for slots"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(PullResult result, ReadSlots(variables, version, slot, pieces,
                                                         [&](size_t variable, size_t index) {
                                                           return kept->slots[variable][index];
                                                         }));
  for (const std::vector<float>& scalars : kept->scalars) {
    result.scalars.insert(result.scalars.end(), scalars.begin(), scalars.end());
  }
  return result;
}

// Of replicated variables, whose slots never change here.
absl::StatusOr<PullResult> ReadStartingSlot(const EpochVariables& variables, GlobalStep version,
                                            const std::string& slot,
                                            const std::vector<ResolvedPiece>& pieces) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      PullResult result,
      ReadSlots(variables, version, slot, pieces, [&](size_t variable, size_t index) {
        return KeptTensor{variables.entries[variable]->variable.slot(index)};
      }));
  for (const std::vector<float>& scalars : variables.start_scalars) {
    result.scalars.insert(result.scalars.end(), scalars.begin(), scalars.end());
  }
  return result;
}

}  // namespace

absl::StatusOr<PullResult> ReadKept(const EpochVariables& variables, const SnapshotStore& snapshots,
                                    const VersionsToStore& to_store, const PullArguments& arguments,
                                    const std::vector<ResolvedPiece>& pieces) {
  if (!arguments.slot.empty() && arguments.version == variables.config.start_step() &&
      std::ranges::all_of(pieces, [&](const ResolvedPiece& piece) {
        return variables.catalog[piece.variable].is_replicated;
      })) {
    return ReadStartingSlot(variables, arguments.version, arguments.slot, pieces);
  }
  if (!to_store.IsComplete(arguments.version)) {
    return absl::UnavailableError(absl::StrCat("version ", arguments.version.value(),
                                               ": its worker has not stored all of it: try again"));
  }
  const auto kept = snapshots.Find(arguments.version);
  if (arguments.slot.empty()) return ReadAverages(variables, kept, arguments.version, pieces);
  return ReadSlot(variables, kept, arguments.version, arguments.slot, pieces);
}

}  // namespace lockstep::ps
