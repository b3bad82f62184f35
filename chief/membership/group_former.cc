#include "chief/membership/group_former.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"

namespace lockstep::chief {

absl::Status VariablesLost(GlobalStep step) {
  return WithExitCode(
      absl::UnavailableError(absl::StrCat(
          "every worker that had the variables and slots of step ",
          WithCommas(static_cast<uint64_t>(step.value())),
          " is lost (strategy replicated). Remedy: start the cluster again, the chief with "
          "--resume: it goes on from the newest checkpoint")),
      ExitCode::kPeersLost);
}

GroupFormer::GroupFormer(Term term, Epoch epoch, size_t size, absl::Span<const LiveMember> adopted)
    : size_(size), id_{.term = term.value(), .epoch = epoch.value()} {
  for (const LiveMember& live : adopted) members_.push_back({live, true});
}

bool GroupFormer::HasVariables(const LiveMember& live, GlobalStep step) const {
  const auto member = std::ranges::find(members_, live, &Member::live);
  return member != members_.end() && (member->has_variables || (id_.view > 0 && step > step_));
}

bool GroupFormer::IsOfView(absl::Span<const LiveMember> live) const {
  return id_.view > 0 && std::ranges::equal(members_, live, {}, &Member::live);
}

absl::StatusOr<bool> GroupFormer::Update(absl::Span<const LiveMember> live, const Steps& steps) {
  if (IsOfView(live) && !failed_.has_value()) return false;
  const GlobalStep open = std::max(steps.open, failed_.value_or(step_));
  const bool is_at_ps = open == steps.at_ps;
  if (!HasHolder(live, open) && !is_at_ps) return VariablesLost(open);
  if (live.size() < size_) return false;
  std::vector<Member> members;
  for (const LiveMember& member : live) {
    members.push_back({member, !is_at_ps && HasVariables(member, open)});
  }
  members_ = std::move(members);
  step_ = open;
  failed_.reset();
  ++id_.view;
  return true;
}

bool GroupFormer::KeepHolders(absl::Span<const LiveMember> live, GlobalStep version) {
  std::vector<Member> holders;
  for (const LiveMember& member : live) {
    if (HasVariables(member, version)) holders.push_back({member, true});
  }
  const bool are_all =
      id_.view > 0 && std::ranges::equal(members_, holders, {}, &Member::live, &Member::live);
  if (holders.empty() || are_all) return false;
  members_ = std::move(holders);
  step_ = version;
  failed_.reset();
  ++id_.view;
  return true;
}

bool GroupFormer::HasHolder(absl::Span<const LiveMember> live, GlobalStep step) const {
  return std::ranges::any_of(live,
                             [&](const LiveMember& member) { return HasVariables(member, step); });
}

void GroupFormer::NoteFailure(const GroupViewId& view, GlobalStep step) {
  if (view.view > 0 && view == id_) failed_ = std::max(step, step_);
}

}  // namespace lockstep::chief
