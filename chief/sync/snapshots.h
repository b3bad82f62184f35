// Snapshots counts the users of each kept version. It releases an unused version at every shard,
// again until each has answered, the step shard first, with the version's evaluation. Until the
// step shard has that, all shards keep the version, and a chief that takes over evaluates it again.
// Lives on the executor's thread.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "chief/loop/executor.h"
#include "chief/sync/retry.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

class Snapshots {
 public:
  // `shards`, `executor` and `clock` outlive the calls in flight: destroy the snapshots after the
  // executor has ended or is closed.
  Snapshots(Command command, std::vector<PsControl*> shards, Executor* executor,
            const Clock* clock);

  // The version exists and has this many users. Without users it is released at once.
  void Hold(GlobalStep version, int users);
  // One user has finished with the version.
  void Release(GlobalStep version);
  // The version has been evaluated; the step shard keeps the result when the version is released.
  // Call it before the evaluation's own Release.
  void NoteEvaluation(EvaluatedVersion evaluation);
  // Repeats the due calls. Call it several times a second.
  void Tick();

 private:
  using Call = std::pair<GlobalStep, size_t>;  // version, shard

  void ReleaseAtOthers(GlobalStep version);
  void Send(const Call& call);
  void OnAnswer(const Call& call, const absl::Status& status);

  const Command command_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  const Clock* const clock_;
  std::map<GlobalStep, int> users_;
  std::map<GlobalStep, EvaluatedVersion> evaluations_;  // until the step shard has them
  std::map<Call, Retry> releases_;                      // not answered yet
};

}  // namespace lockstep::chief
