// Keeping a version: what is copied, what is shared.
#pragma once

#include <memory>

#include "ps/shard/epoch_state.h"
#include "ps/shard/snapshot_store.h"
#include "ps/step/step_machine.h"

namespace lockstep::ps {

// Of the values just published, while no variable is closing. Slots, averages and tables are
// copied; the scalars are left to the caller. nullptr when nothing is to be kept.
std::shared_ptr<Snapshot> TakeSnapshot(const EpochState& state, const GrantTerms& terms);

// What it copies for that.
uint64_t SnapshotBytes(const EpochState& state, const GrantTerms& terms);

// Whether `snapshot`, which may be null, has all that the terms keep.
bool Satisfies(const Snapshot* snapshot, const GrantTerms& terms);

}  // namespace lockstep::ps
