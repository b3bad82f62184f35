#include "worker/service/group_source.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/collective/local_group_reducer.h"
#include "worker/peer/group.h"
#include "worker/peer/peer_group_reducer.h"
#include "worker/peer/peer_service.h"

namespace lockstep::worker {
namespace {

GroupViewId IdOf(const GroupView& view) { return {view.term(), view.epoch(), view.view()}; }

bool HaveSameMembers(const GroupView& a, const GroupView& b) {
  return std::ranges::equal(
      a.members(), b.members(), [](const GroupMember& one, const GroupMember& other) {
        return one.worker() == other.worker() && one.incarnation() == other.incarnation();
      });
}

absl::Status Cancelled() { return absl::CancelledError("training was cancelled"); }

}  // namespace

GroupSource::~GroupSource() { SetOwnState(nullptr); }

void GroupSource::SetView(const GroupView& view) {
  if (options_.peers == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    if (newest_.has_value() && IdOf(view) <= IdOf(*newest_)) return;
    const bool is_first_of_chief =
        newest_.has_value() && view.term() > newest_->term() && view.view() == 1;
    newest_ = view;
    has_news_ = !is_first_of_chief || !told_.has_value() || !HaveSameMembers(view, *told_);
    if (!has_news_) return;
  }
  options_.peers->AnnounceView(view.job(), IdOf(view));
  Answer();
}

GroupViewId GroupSource::failed_view() const {
  absl::MutexLock lock(&mutex_);
  if (!has_failed_) return {};
  // A view that is still to be told may end well.
  return IdOf(has_news_ ? *told_ : *newest_);
}

void GroupSource::NoteFailure(const GroupViewId& view) {
  absl::MutexLock lock(&mutex_);
  // The chief replaces a view that has failed, and must not replace one that may work. There is no
  // view of one worker.
  if (view.view > 0 && told_.has_value() && view == IdOf(*told_)) has_failed_ = true;
}

void GroupSource::SetOwnState(OwnState* state) {
  if (options_.peers != nullptr) options_.peers->SetOwnState(state);
}

void GroupSource::Next(Callback<ReducerOfGroup> done) {
  {
    absl::MutexLock lock(&mutex_);
    pending_ = std::move(done);
    if (options_.num_workers == 1) has_news_ = !told_.has_value();
  }
  Answer();
}

void GroupSource::Cancel() {
  std::shared_ptr<GroupReducer> reducer;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    reducer = reducer_.lock();
  }
  if (reducer != nullptr) reducer->Cancel(Cancelled());
  Answer();
}

void GroupSource::Answer() {
  Callback<ReducerOfGroup> done;
  GroupView view;
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!pending_ || !(is_cancelled_ || has_news_)) return;
    done = std::exchange(pending_, nullptr);
    is_cancelled = is_cancelled_;
    has_news_ = has_failed_ = false;
    if (newest_.has_value()) view = *newest_;
    told_ = view;
  }
  if (is_cancelled) return done(Cancelled());
  absl::StatusOr<ReducerOfGroup> group =
      options_.num_workers == 1 ? MakeLocal() : MakeOfPeers(view);
  Callback<ReducerOfGroup> answered;
  {
    absl::MutexLock lock(&mutex_);
    if (group.ok()) reducer_ = group->reducer;
    is_cancelled = is_cancelled_;
    // A newer view has come meanwhile.
    if (absl::IsAborted(group.status()) && has_news_) {
      pending_ = std::move(done);
    } else {
      answered = std::move(done);
    }
  }
  if (!answered) return Answer();
  if (is_cancelled) return answered(Cancelled());
  answered(std::move(group));
}

absl::StatusOr<ReducerOfGroup> GroupSource::MakeLocal() const {
  LOCKSTEP_ASSIGN_OR_RETURN(GroupReduction reduction, options_.reduction(1));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<GroupReducer> reducer,
                            LocalGroupReducer::Create(std::move(reduction)));
  return ReducerOfGroup{.reducer = std::move(reducer), .step = options_.first_step};
}

absl::StatusOr<ReducerOfGroup> GroupSource::MakeOfPeers(const GroupView& view) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Group group,
                            GroupFromProto(view, options_.worker, options_.incarnation));
  ReducerOfGroup of{.view = group.view,
                    .step = GlobalStep(group.step),
                    .is_first = group.position == 0,
                    .sums_differ = options_.shrinks};
  const auto first_holder = std::ranges::find(group.members, true, &Group::Member::has_variables);
  of.counts_as_holder = group.members[group.position].has_variables;
  of.is_first_holder = first_holder == group.members.begin() + group.position;
  for (int position = 0; position < group.size(); ++position) {
    if (group.members[position].has_variables && position != group.position) {
      of.holders.push_back(position);
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(GroupReduction reduction, options_.reduction(group.size()));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<PeerGroupReducer> reducer,
                            PeerGroupReducer::Create({.group = std::move(group),
                                                      .reduction = std::move(reduction),
                                                      .shared_memory = options_.shared_memory,
                                                      .checksums = options_.checksums,
                                                      .queue = options_.queue,
                                                      .credentials = options_.credentials,
                                                      .timer = options_.timer,
                                                      .clock = options_.clock,
                                                      .connect = options_.connect},
                                                     options_.peers));
  of.states = reducer.get();
  of.reducer = std::move(reducer);
  return of;
}

}  // namespace lockstep::worker
