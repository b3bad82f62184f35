// Pulls of averages and slots, which kept versions have.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "ps/shard/catalog.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/stored_version.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {

// Of a pull that names a slot, or asks for averages. Of replicated variables the slots of the
// starting version are here, too. FAILED_PRECONDITION: the version is not kept with them;
// UNAVAILABLE: not all of it has been stored; INVALID_ARGUMENT: a variable has no such slot. Under
// the shard's lock.
absl::StatusOr<PullResult> ReadKept(const EpochVariables& variables, const SnapshotStore& snapshots,
                                    const VersionsToStore& to_store, const PullArguments& arguments,
                                    const std::vector<ResolvedPiece>& pieces);

}  // namespace lockstep::ps
