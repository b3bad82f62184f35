// PairRoles knows which place of a shard serves it, and sends the orders that change that.
//
// Lives on the executor's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/copies/pair_view.h"
#include "chief/copies/place.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"

namespace lockstep::chief {

class PairRoles {
 public:
  using Places = std::array<Place*, kNumPlaces>;

  // Calls under way end with `why`, except saves at `stays`, the place that still serves.
  using OnChange = std::function<void(const absl::Status& why, std::optional<PlaceIndex> stays)>;

  // The objects pointed to outlive this object.
  PairRoles(const Places& places, Executor* executor, OnChange on_change);

  // The shard's name: "ps 0 (host:port)".
  const std::string& name() const { return places_[kHome]->name(); }
  PairState state() const { return state_; }
  PlaceIndex serving() const { return serving_; }
  Place* place(PlaceIndex index) const { return places_[index]; }
  Place* serving_place() const { return places_[serving_]; }
  Place* other_place() const { return places_[OtherPlace(serving_)]; }
  uint64_t epoch() const { return epoch_; }
  // The term of the chief's newest view.
  uint64_t term() const { return view_.command().term(); }
  // An order that changes the serving place is under way: no call can be made.
  bool is_changing() const { return is_changing_; }
  // The place of a pair that this chief has told to serve alone, and that may have obeyed. Until it
  // answers or is lost, the other one must not serve alone, and no call can be made.
  std::optional<PlaceIndex> undecided() const;
  // Both have accepted this chief's view, have the variables, and serve as a pair.
  bool IsGuarded() const { return state_ == PairState::kPair && is_confirmed_; }
  // One place serves under this chief's view, and has no complete copy.
  bool IsAlone() const { return state_ == PairState::kAlone && is_confirmed_; }

  // Takes over the view that a chief found when it took command.
  void Adopt(const PairView& view);
  // Begins another epoch, with new state at both places; the home serves.
  void BeginEpoch(uint64_t epoch);
  // The serving place has accepted this chief's view and has the variables, and so has the copy of
  // a pair.
  void Confirm() { is_confirmed_ = true; }
  // Withdraws Confirm, and forgets an undecided place. The caller asks the places again.
  void Withdraw();
  // Notes that `global_step` is committed.
  void NoteCommitted(int64_t global_step);

  // Tells the place that serves the chief's newest view. Every order has a number of its own, so
  // that one that arrives late is refused. UNAVAILABLE: another order is under way; try again.
  void TellServing(const SetViewRequest& view, Callback<SetViewReply> done);
  // Tells the copy of a pair the same.
  void TellCopy(const SetViewRequest& view, Callback<SetViewReply> done);

  // The copy of a pair that this chief has just found lacks state: it does not count as a copy.
  void ForgetCopy();
  // Tells the other place of a shard that is alone to keep a new copy. That place drops the state
  // it has.
  void MakeCopy(Callback<SetViewReply> done);
  // Tells the serving place, now and with each view, that the other place keeps its copy.
  void AddCopy(Callback<SetViewReply> done);
  // The copy lacks nothing, and the serving place waits for it.
  void BecomePair();

  // Makes the copy of a pair serve alone. On an error in `done` the serving place is not known to
  // have changed. After a transient error try again.
  void Promote(const std::string& why, StatusCallback done);
  // Makes the serving place serve without the copy. `done` as in Promote.
  void GoOnAlone(const std::string& line, StatusCallback done);
  // Gives the same order again; a place must be undecided. `done` as in Promote.
  void RepeatChange(StatusCallback done);
  // No place serves under this chief any more. Calls end with `why` until the next Adopt:
  // LostVariablesError or, if another chief commands, ABORTED.
  void MarkLost(absl::Status why);
  // Valid if the state is kLost.
  const absl::Status& why_lost() const { return why_lost_; }

 private:
  struct Told {
    uint64_t order;
    Callback<SetViewReply> done;
  };

  // An order that makes `to` serve alone.
  struct Change {
    PlaceIndex to;
    SetViewRequest request;  // without its number
    std::string line;        // to log once the place obeys
  };

  void Order(const Change& change, StatusCallback done);
  absl::Status OnChanged(const Change& change, const absl::StatusOr<SetViewReply>& reply);
  // Ends the calls under way, as OnChange says.
  void Interrupt(const absl::Status& why, std::optional<PlaceIndex> stays = std::nullopt);
  // `to` if it is the serving place, else nullopt.
  std::optional<PlaceIndex> ServesOn(PlaceIndex to) const;
  // UNAVAILABLE with this reason: the call is to be made again.
  absl::Status TryAgain(absl::string_view why) const;

  const Places places_;
  Executor* const executor_;
  const OnChange on_change_;
  PairState state_ = PairState::kUnknown;
  absl::Status why_lost_;
  PlaceIndex serving_ = kHome;
  bool is_confirmed_ = false;
  bool is_changing_ = false;
  std::optional<Change> undecided_;  // of a guarded pair
  bool has_new_copy_ = false;        // each view tells it to the place that serves alone
  uint64_t epoch_ = 0;               // the highest that was seen
  int64_t committed_ = 0;            // newest global step that was noted
  uint64_t last_order_ = 0;
  SetViewRequest view_;       // the newest
  std::optional<Told> told_;  // the order that the serving place has not answered
};

}  // namespace lockstep::chief
