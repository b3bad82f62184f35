// Who serves a shard, as this chief knows it, and the orders that change it.
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

  // Calls under way end with `why`, but for saves at `stays`: the place that serves on as before.
  using OnChange = std::function<void(const absl::Status& why, std::optional<PlaceIndex> stays)>;

  // What is pointed to outlives them.
  PairRoles(const Places& places, Executor* executor, OnChange on_change);

  // Of the shard: "ps 0 (host:port)".
  const std::string& name() const { return places_[kHome]->name(); }
  PairState state() const { return state_; }
  PlaceIndex serving() const { return serving_; }
  Place* place(PlaceIndex index) const { return places_[index]; }
  Place* serving_place() const { return places_[serving_]; }
  Place* other_place() const { return places_[OtherPlace(serving_)]; }
  uint64_t epoch() const { return epoch_; }
  // Of the chief's newest view.
  uint64_t term() const { return view_.command().term(); }
  // An order that changes who serves is under way: no call can be made.
  bool is_changing() const { return is_changing_; }
  // The place of a pair that this chief has told to go on, and that may have obeyed. Until it
  // answers or is lost, the other one must not go on, and no call can be made.
  std::optional<PlaceIndex> undecided() const;
  // Both have accepted this chief's view, have the variables, and serve as a pair.
  bool IsGuarded() const { return state_ == PairState::kPair && is_confirmed_; }
  // One serves under this chief's view, and has no complete copy.
  bool IsAlone() const { return state_ == PairState::kAlone && is_confirmed_; }

  // What a chief that takes command has seen.
  void Adopt(const PairView& view);
  // Another epoch is another state, at both; the home serves.
  void BeginEpoch(uint64_t epoch);
  // The one that serves has accepted this chief's view and has the variables, and so has the copy
  // of a pair.
  void Confirm() { is_confirmed_ = true; }
  // Callers find out what has become of the shard.
  void Withdraw();
  // `global_step` is committed.
  void NoteCommitted(int64_t global_step);

  // Tells the place that serves the chief's newest view. Every order has a number of its own, so
  // that one that arrives late is refused. UNAVAILABLE: another order is under way; try again.
  void TellServing(const SetViewRequest& view, Callback<SetViewReply> done);
  // Tells the copy of a pair the same.
  void TellCopy(const SetViewRequest& view, Callback<SetViewReply> done);

  // The copy of a pair that this chief has just found lacks state: it is none.
  void ForgetCopy();
  // For a new copy of a shard that is alone. The other place is told to keep a copy, and drops what
  // it has.
  void MakeCopy(Callback<SetViewReply> done);
  // The one that serves is told, now and with each view, that the other place keeps its copy.
  void AddCopy(Callback<SetViewReply> done);
  // The copy lacks nothing, and the one that serves waits for it.
  void BecomePair();

  // The copy of a pair serves from now on, alone. `done` with an error: who serves is not known to
  // have changed. A transient one: try again.
  void Promote(const std::string& why, StatusCallback done);
  // The one that serves goes on without the copy. The same.
  void GoOnAlone(const std::string& line, StatusCallback done);
  // Where one is undecided: gives the same order again. The same.
  void RepeatChange(StatusCallback done);
  // Nobody serves any more under this chief. `why`: what calls end with until somebody looks again,
  // LostVariablesError or, where another chief commands, ABORTED.
  void MarkLost(absl::Status why);
  // Where the state is kLost.
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
    std::string line;        // once it is obeyed
  };

  void Order(const Change& change, StatusCallback done);
  absl::Status OnChanged(const Change& change, const absl::StatusOr<SetViewReply>& reply);
  // Calls under way end, as OnChange says.
  void Interrupt(const absl::Status& why, std::optional<PlaceIndex> stays = std::nullopt);
  // The one that serves, where that is `to`, too.
  std::optional<PlaceIndex> ServesOn(PlaceIndex to) const;
  // They are to be made again, for this reason.
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
  bool has_new_copy_ = false;        // the one that serves alone is told so
  uint64_t epoch_ = 0;               // the highest that was seen
  int64_t committed_ = 0;            // global step, as far as it was told
  uint64_t last_order_ = 0;
  SetViewRequest view_;       // the newest
  std::optional<Told> told_;  // the order that the one that serves has not answered
};

}  // namespace lockstep::chief
