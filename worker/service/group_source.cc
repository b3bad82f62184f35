#include "worker/service/group_source.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/collective/local_group_reducer.h"
#include "worker/peer/group.h"
#include "worker/peer/peer_group_reducer.h"
#include "worker/peer/peer_service.h"

namespace lockstep::worker {
namespace {

ViewId IdOf(const GroupView& view) { return {view.term(), view.epoch(), view.view()}; }

}  // namespace

void GroupSource::SetView(const GroupView& view) {
  if (options_.peers == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    if (newest_.has_value() && IdOf(view) <= IdOf(*newest_)) return;
    newest_ = view;
    is_told_ = false;
  }
  options_.peers->AnnounceView(IdOf(view));
  Answer();
}

void GroupSource::Next(Callback<ReducerOfGroup> done) {
  {
    absl::MutexLock lock(&mutex_);
    pending_ = std::move(done);
  }
  Answer();
}

void GroupSource::Cancel() {
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
  }
  Answer();
}

void GroupSource::Answer() {
  Callback<ReducerOfGroup> done;
  std::optional<GroupView> view;
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    const bool has_news = options_.num_workers == 1 || (newest_.has_value() && !is_told_);
    if (!pending_ || !(is_cancelled_ || has_news)) return;
    done = std::exchange(pending_, nullptr);
    is_cancelled = is_cancelled_;
    is_told_ = true;
    view = newest_;
  }
  if (is_cancelled) return done(absl::CancelledError("training was cancelled"));
  if (options_.num_workers > 1) return done(Make(*view));
  auto local = LocalGroupReducer::Create(options_.reduction);
  if (!local.ok()) return done(local.status());
  done(ReducerOfGroup{*std::move(local), true});
}

absl::StatusOr<ReducerOfGroup> GroupSource::Make(const GroupView& view) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Group group,
                            GroupFromProto(view, options_.worker, options_.incarnation));
  const bool is_first = group.position == 0;
  LOCKSTEP_ASSIGN_OR_RETURN(auto reducer,
                            PeerGroupReducer::Create({.group = std::move(group),
                                                      .reduction = options_.reduction,
                                                      .shared_memory = options_.shared_memory,
                                                      .queue = options_.queue,
                                                      .timer = options_.timer},
                                                     options_.peers));
  return ReducerOfGroup{std::move(reducer), is_first};
}

}  // namespace lockstep::worker
