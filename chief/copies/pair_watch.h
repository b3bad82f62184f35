// Looks after a guarded pair: asks both places four times a second what they are, and lets the
// other one go on when one of them is lost.
//
// Lives on the executor's thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

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

class PairWatch {
 public:
  // `patience` with a place that is silent. The rest outlives the calls under way.
  PairWatch(absl::Duration patience, PairRoles* roles, Executor* executor, const Clock* clock);

  // Both are there, and have been heard of now. What was asked before is nobody's concern.
  void Begin();
  // Several times a second.
  void Tick();

  // What a call to this place has ended with: UNAVAILABLE in place of what shows that one of a
  // guarded pair is lost.
  absl::Status NoteFailure(PlaceIndex place, absl::Status failure);
  // The same of a view that this place has told.
  absl::Status NoteView(PlaceIndex place, const SetViewReply& view);

 private:
  struct Watched {
    std::optional<std::string> WhyLost(absl::Duration now, absl::Duration patience) const {
      return health.WhyLost(now, patience, questions.AwaitsAnswer());
    }

    PlaceHealth health;
    ViewQuestions questions;
  };

  // Asks both, when it is time.
  void AskBothPlaces();
  // `told` may have obeyed an order to go on.
  void SettleChange(PlaceIndex told);
  void Promote(const std::string& why);
  void GoOnAlone(const std::string& why);
  // What an order to change places ends with: an error means that the shard is lost, unless it is
  // to be given again.
  StatusCallback AfterOrder();
  void Ask(PlaceIndex place);
  void OnView(PlaceIndex place, uint64_t question, const absl::StatusOr<SetViewReply>& view);
  // Records which of the two is lost, if any, by the primary's view of its copy.
  void JudgeByPrimary(PlaceIndex place, const SetViewReply& view);

  const absl::Duration patience_;
  PairRoles* const roles_;
  Executor* const executor_;
  const Clock* const clock_;
  std::array<Watched, kNumPlaces> watched_;
  uint64_t generation_ = 0;  // counts Begin
  absl::Duration next_look_;
};

}  // namespace lockstep::chief
