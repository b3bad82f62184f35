// Finds when the other place of a shard that is served alone is back, and makes it the copy: one
// attempt after another, with growing pauses.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/copies/copy_attachment.h"
#include "chief/copies/pair_roles.h"
#include "chief/loop/executor.h"
#include "common/base/clock.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

class CopyAttacher {
 public:
  // `on_pair` is called when the two are a pair again. The rest as CopyAttachment.
  CopyAttacher(absl::Duration patience, PairRoles* roles, Executor* executor, const Clock* clock,
               std::function<void()> on_pair);

  // How the shard's variables were created in this epoch. Without that there is no copy to make.
  void SetVariables(const CreateVariablesRequest& variables) { variables_ = variables; }
  bool has_variables() const { return variables_.has_value(); }
  // The job is over, or another epoch begins, whose variables are to be set.
  void Stop() { variables_.reset(); }
  // Several times a second.
  void Tick();

 private:
  void FindPlaceForCopy();
  void Start();
  void OnOutcome();

  const absl::Duration patience_;
  PairRoles* const roles_;
  Executor* const executor_;
  const Clock* const clock_;
  const std::function<void()> on_pair_;
  std::optional<CreateVariablesRequest> variables_;
  std::optional<CopyAttachment> attempt_;
  bool is_looking_ = false;
  absl::Duration next_look_;
  absl::Duration pause_;  // after the next attempt that fails
};

}  // namespace lockstep::chief
