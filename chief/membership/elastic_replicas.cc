#include "chief/membership/elastic_replicas.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace lockstep::chief {

ElasticReplicas::ElasticReplicas(const ReplicaRules& rules, OnShortage on_shortage,
                                 absl::Duration deadline, const Membership* membership)
    : rules_(rules),
      on_shortage_(on_shortage),
      deadline_(deadline),
      membership_(membership),
      quorum_{.possible = std::numeric_limits<int64_t>::max()} {}

bool ElasticReplicas::Begin(GlobalStep first) {
  LOCKSTEP_CHECK(views_.empty());
  std::vector<WorkerIndex> candidates;
  for (const LiveMember& member : confirmed_) candidates.push_back(member.worker);
  std::vector<WorkerIndex> chosen = ChooseReplicas(rules_, candidates, nullptr);
  if (chosen.empty()) return false;
  LOCKSTEP_CHECK(views_.Add(MakeReplicaView(rules_, 1, first, std::move(chosen))).ok());
  return true;
}

bool ElasticReplicas::Update(GlobalStep at_hand, GlobalStep first, absl::Duration now) {
  const ReplicaView& newest = views_.newest();
  std::vector<WorkerIndex> chosen = ChooseReplicas(rules_, Candidates(now), &newest);
  if (chosen.empty() || chosen == newest.workers) return false;
  // Of a view that is announced already no step changes: the next one follows it.
  first = std::max(first, newest.first.next());
  NoteLeftOut(newest.workers, chosen);
  ReplicaView view = MakeReplicaView(rules_, newest.number + 1, first, std::move(chosen));
  LOCKSTEP_CHECK(views_.Add(std::move(view)).ok());
  views_.ForgetBefore(at_hand);
  return true;
}

std::vector<WorkerIndex> ElasticReplicas::Candidates(absl::Duration now) {
  std::vector<WorkerIndex> candidates;
  // A chief that takes over may not know every replica of a view.
  const uint32_t known = static_cast<uint32_t>(membership_->members().size());
  const uint32_t end = std::max(known, views_.newest().workers.back().value() + 1);
  for (uint32_t i = 0; i < end; ++i) {
    const WorkerIndex worker(i);
    const bool is_live = IsLive(worker);
    if (is_live) missing_since_.erase(worker);
    const bool is_awaited = !is_live && views_.newest().Has(worker) && !IsGivenUp(worker, now);
    if (is_awaited || MayTakePart(worker)) candidates.push_back(worker);
  }
  return candidates;
}

bool ElasticReplicas::MayTakePart(WorkerIndex worker) const {
  if (!IsLive(worker)) return false;
  const WorkerReport& report = membership_->members()[worker.value()].report;
  if (report.departing) return false;
  return views_.newest().Has(worker) || (report.ready && IsConfirmed(worker));
}

bool ElasticReplicas::HasEnough() const {
  std::vector<WorkerIndex> live;
  for (uint32_t i = 0; i < membership_->members().size(); ++i) {
    if (MayTakePart(WorkerIndex(i))) live.emplace_back(i);
  }
  return !ChooseReplicas(rules_, live, &views_.newest()).empty();
}

bool ElasticReplicas::IsGivenUp(WorkerIndex worker, absl::Duration now) {
  const absl::Duration since = missing_since_.try_emplace(worker, now).first->second;
  // A shard that has it as a member still would count a late gradient of it beside fewer others.
  if (IsConfirmed(worker)) return false;
  if (HasLeft(worker)) return true;
  switch (on_shortage_) {
    case OnShortage::kShrink:
      return true;
    case OnShortage::kWait:
      return now - since >= deadline_;
    case OnShortage::kAbort:
      return false;
  }
  return false;
}

bool ElasticReplicas::IsLive(WorkerIndex worker) const {
  const auto& members = membership_->members();
  return worker.value() < members.size() && members[worker.value()].state == MemberState::kLive;
}

bool ElasticReplicas::HasLeft(WorkerIndex worker) const {
  const auto& members = membership_->members();
  return worker.value() < members.size() && members[worker.value()].has_left;
}

bool ElasticReplicas::IsConfirmed(WorkerIndex worker) const {
  return std::ranges::find(confirmed_, worker, &LiveMember::worker) != confirmed_.end();
}

void ElasticReplicas::NoteLeftOut(const std::vector<WorkerIndex>& before,
                                  const std::vector<WorkerIndex>& now) {
  const auto& members = membership_->members();
  for (const WorkerIndex worker : before) {
    if (worker.value() < members.size()) left_out_[worker] = members[worker.value()].incarnation;
  }
  for (const WorkerIndex worker : now) left_out_.erase(worker);
}

bool ElasticReplicas::HasTakenPart(const LiveMember& process) const {
  if (const auto found = left_out_.find(process.worker); found != left_out_.end()) {
    return found->second == process.incarnation;
  }
  // The chief before has left it out, if not a process before this one: a chief that takes command
  // cannot tell the two apart, and waits for either.
  const auto& members = membership_->members();
  if (process.worker.value() >= members.size()) return false;
  const MemberRecord& member = members[process.worker.value()];
  return member.is_inherited && member.incarnation == process.incarnation;
}

// Those that the newest view has left out, and that are gone, push nothing for an earlier one. A
// successor loads its data and plans memory for minutes before it pushes.
bool ElasticReplicas::IsNeeded(WorkerIndex worker) const {
  if (views_.newest().Has(worker)) return true;
  if (IsLive(worker)) {
    const MemberRecord& member = membership_->members()[worker.value()];
    if (member.report.ready || HasTakenPart({worker, member.incarnation})) return true;
  }
  return std::ranges::any_of(confirmed_, [&](const LiveMember& member) {
    return member.worker == worker && HasTakenPart(member);
  });
}

uint32_t ElasticReplicas::RequiredOf(GlobalStep step) const {
  const ReplicaView* const view = views_.At(step);
  if (view == nullptr) return 1;
  const auto there = static_cast<uint32_t>(
      std::ranges::count_if(view->workers, [this](WorkerIndex w) { return IsNeeded(w); }));
  return std::min(view->aggregate, std::max(there, 1u));
}

ReplicaShare ElasticReplicas::ShareOf(GlobalStep step, WorkerIndex worker) const {
  const ReplicaView* const view = views_.At(step);
  return view == nullptr ? ReplicaShare() : view->ShareOf(worker);
}

const Quorum& ElasticReplicas::Evaluate(GlobalStep step) {
  const ReplicaView* const view = views_.At(step);
  quorum_ = {.required = RequiredOf(step)};
  if (view != nullptr) {
    quorum_.possible =
        std::ranges::count_if(view->workers, [this](WorkerIndex w) { return IsLive(w); });
  }
  quorum_.is_short = quorum_.possible < quorum_.required;
  const auto is_lost = [this](WorkerIndex w) { return !IsLive(w) && !HasLeft(w); };
  quorum_.must_end = quorum_.is_short && on_shortage_ == OnShortage::kAbort && view != nullptr &&
                     std::ranges::any_of(view->workers, is_lost);
  return quorum_;
}

}  // namespace lockstep::chief
