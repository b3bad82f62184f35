// One attempt to make a new copy of a shard while the job trains: the other place is made a copy
// that awaits its state, the one that serves sends it its state, and the two become a pair.
//
//   SetView(COPY) and CreateVariables(awaits_state) at the other place
//   SetView(copy_address) at the one that serves
//   GetView of both, four times a second, until the copy lacks nothing
//
// Nobody promotes the copy before that. Lives on the executor's thread.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/copies/pair_roles.h"
#include "chief/copies/place_health.h"
#include "chief/copies/view_questions.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

class CopyAttachment {
 public:
  // Of a shard that is alone. `variables` as the shard's own were created in this epoch; `patience`
  // with a copy that is silent. The rest outlives the calls under way; the attempt need not.
  CopyAttachment(CreateVariablesRequest variables, absl::Duration patience, PairRoles* roles,
                 Executor* executor, const Clock* clock);

  void Start();
  // Several times a second, while the shard is alone under this chief's view.
  void Tick();

  // OK: the copy lacks nothing, and the primary waits for it. An error: why the copy is given up;
  // the one that serves goes on alone.
  const std::optional<absl::Status>& outcome() const { return outcome_; }
  absl::Duration elapsed() const { return clock_->Monotonic() - began_; }

 private:
  enum class Step {
    kMakeCopy,
    kTellPrimary,  // an order is due
    kTransfer,
    kTakeBack,      // an order is due: the primary goes on alone
    kAwaitsAnswer,  // of an order to the primary
  };

  void CreateVariables();
  void TellPrimary();
  void Ask();
  void OnCopy(uint64_t question, const absl::StatusOr<SetViewReply>& copy);
  // The copy was complete before the primary was asked, or was not.
  void OnPrimary(bool is_complete, const absl::StatusOr<SetViewReply>& primary);
  void Fail(const absl::Status& why);
  void TakeBack();

  // Calls `use` with the answer, unless the attempt is over by then.
  template <typename T>
  Callback<T> IfAlive(Callback<T> use);

  const CreateVariablesRequest variables_;
  const absl::Duration patience_;
  PairRoles* const roles_;
  Executor* const executor_;
  const Clock* const clock_;
  const absl::Duration began_;
  Step step_ = Step::kMakeCopy;
  std::optional<absl::Status> outcome_;
  absl::Status failure_;
  PlaceHealth copy_;
  ViewQuestions copy_questions_;
  ViewQuestions questions_;  // each to the copy and, after its answer, to the primary
  absl::Duration next_look_;
  const std::shared_ptr<const bool> is_alive_ = std::make_shared<const bool>(true);
};

}  // namespace lockstep::chief
