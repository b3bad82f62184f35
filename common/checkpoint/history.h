// Selects the checkpoints of a folder that belong to the history that goes on. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/checkpoint/origin.h"

namespace lockstep {

// The fields of a checkpoint that describe its history.
struct HistoryPoint {
  int64_t step = 0;
  uint64_t epoch = 0;
  CheckpointOrigin origin;  // of its epoch
  bool is_finite = true;    // Manifest::IsFinite
};

// The steps that lead to step `last` of `epoch`, the newest first: those of the epoch up to there,
// then those of its origin's epoch up to the origin, and so on. The list ends where the epoch of an
// origin is none of `points`': earlier steps are not known.
std::vector<int64_t> StepsUpTo(const std::vector<HistoryPoint>& points, uint64_t epoch,
                               int64_t last);

// The newest finite one of these steps. If none is finite, the newest finite one of all `points` up
// to `last`: the epochs in between may have no checkpoint any more.
std::optional<int64_t> NewestFinite(const std::vector<HistoryPoint>& points, uint64_t epoch,
                                    int64_t last);

// True if a run of this epoch, or of a later one, has saved: one of `points` is of it.
bool HasSavedSince(const std::vector<HistoryPoint>& points, uint64_t epoch);

// The run that has the folder: an epoch that may have no checkpoint yet.
struct HistoryTip {
  uint64_t epoch = 0;
  CheckpointOrigin origin;
};

// The steps of the history that goes on, the newest first: that of the highest epoch. If `tip` has
// a higher one, the steps that lead to its origin, unless that is none of `points`.
std::vector<int64_t> StepsThatGoOn(const std::vector<HistoryPoint>& points,
                                   const std::optional<HistoryTip>& tip);

}  // namespace lockstep
