#include "chief/membership/membership.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"

namespace lockstep::chief {
namespace {

// More processes than this for one index are not told apart.
constexpr size_t kMaxContenders = 16;

}  // namespace

std::string DescribeProcess(const MemberRecord& member) {
  if (member.host.empty()) return "inherited from the previous chief, host and pid unknown";
  return absl::StrCat("host ", member.host, ", pid ", member.pid);
}

Membership::Membership(std::vector<std::string> addresses, absl::Duration lease)
    : lease_(lease), contenders_(addresses.size()) {
  for (std::string& address : addresses) {
    members_.emplace_back().address = std::move(address);
  }
}

void Membership::SetAddress(WorkerIndex worker, const std::string& address) {
  if (worker.value() >= members_.size()) {
    members_.resize(worker.value() + size_t{1});
    contenders_.resize(members_.size());
  }
  members_[worker.value()].address = address;
}

absl::StatusOr<Admission> Membership::Register(WorkerIndex worker, Incarnation incarnation,
                                               const std::string& host, int64_t pid,
                                               absl::Duration now,
                                               std::optional<absl::Duration> came) {
  if (worker.value() >= members_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no worker ", worker.value(),
                                                   ", the cluster has ", members_.size(),
                                                   ". Remedy: correct --task_index"));
  }
  MemberRecord& member = members_[worker.value()];
  auto& contenders = contenders_[worker.value()];
  if (member.state == MemberState::kLive && member.incarnation != incarnation) {
    if (contenders.size() >= kMaxContenders && !contenders.contains(incarnation)) {
      contenders.clear();
    }
    const absl::Duration first_asked = contenders.try_emplace(incarnation, now).first->second;
    if (member.is_awaited) {
      const absl::Duration silent_since = std::max(first_asked, member.last_heard);
      member.not_lost_before = std::min(member.not_lost_before, silent_since + lease_);
    }
    if (member.alive_at <= first_asked) return Admission::kContended;
    return absl::AlreadyExistsError(
        absl::StrCat("worker ", worker.value(), " is running already: ", DescribeProcess(member),
                     ". Remedy: give this process another --task_index, or end that one"));
  }
  if (member.state != MemberState::kLive) {
    contenders.clear();
    member.state = MemberState::kLive;
    member.incarnation = incarnation;
    member.report = WorkerReport();
    member.alive_at = absl::ZeroDuration();
    member.is_inherited = false;
    ++changes_;
  }
  member.host = host;
  member.pid = pid;
  member.is_awaited = false;
  member.last_heard = std::max(member.last_heard, came.value_or(now));
  // It hears only now that it is a member.
  member.not_lost_before = now + lease_;
  return Admission::kAdmitted;
}

void Membership::Adopt(const LiveMember& member, absl::Duration now, absl::Duration grace,
                       const StandbyCallers* callers) {
  if (member.worker.value() >= members_.size()) return;
  MemberRecord& record = members_[member.worker.value()];
  if (record.state == MemberState::kLive && record.incarnation == member.incarnation) {
    record.is_inherited = true;
    return;
  }
  record.state = MemberState::kLive;
  record.incarnation = member.incarnation;
  record.host.clear();
  record.pid = 0;
  record.report = WorkerReport();
  record.last_heard = now;
  record.alive_at = absl::ZeroDuration();
  record.not_lost_before = now + std::max(grace, lease_);
  record.is_inherited = record.is_awaited = true;
  ++changes_;
  if (callers == nullptr) return;
  // One that was silent while others asked for its index has been silent since then at least.
  const ProcessCalls processes = callers->Of(member.worker, now);
  for (const auto& [incarnation, calls] : processes) {
    contenders_[member.worker.value()].try_emplace(incarnation, calls.first);
    record.last_heard = std::min(record.last_heard, calls.first);
  }
  contenders_[member.worker.value()].erase(member.incarnation);
  if (const auto own = processes.find(member.incarnation); own != processes.end()) {
    record.last_heard = own->second.last;
  }
}

absl::Status Membership::CheckHolder(WorkerIndex worker, Incarnation incarnation) const {
  if (worker.value() >= members_.size()) {
    return absl::AbortedError(absl::StrCat("there is no worker ", worker.value()));
  }
  const MemberRecord& member = members_[worker.value()];
  if (member.state != MemberState::kLive || member.incarnation != incarnation) {
    if (member.state == MemberState::kLive) {
      return absl::AbortedError(absl::StrCat("worker ", worker.value(),
                                             " is now another process: ", DescribeProcess(member)));
    }
    if (member.state == MemberState::kAbsent) {
      return WithExitCode(
          absl::AbortedError(
              absl::StrCat("worker ", worker.value(), " is no member of the job: register first")),
          ExitCode::kPeersLost);
    }
    return WithExitCode(
        absl::AbortedError(absl::StrCat("worker ", worker.value(),
                                        " was silent for longer than its lease and counts as lost. "
                                        "Remedy: start it again")),
        ExitCode::kPeersLost);
  }
  return absl::OkStatus();
}

absl::Status Membership::Leave(WorkerIndex worker, Incarnation incarnation, absl::Duration now) {
  LOCKSTEP_RETURN_IF_ERROR(CheckHolder(worker, incarnation));
  EndLease(&members_[worker.value()], now);
  members_[worker.value()].has_left = true;
  return absl::OkStatus();
}

void Membership::EndLease(MemberRecord* member, absl::Duration now) {
  member->state = MemberState::kLost;
  member->lost_since = now;
  member->has_left = false;
  ++changes_;
}

absl::Status Membership::Heartbeat(WorkerIndex worker, Incarnation incarnation, WorkerReport report,
                                   absl::Duration now) {
  LOCKSTEP_RETURN_IF_ERROR(CheckHolder(worker, incarnation));
  MemberRecord& member = members_[worker.value()];
  report.out_of_data |= member.report.out_of_data;
  if (report.out_of_data && !member.report.out_of_data) lost_tokens_.insert(report.local_step);
  member.report = std::move(report);
  member.last_heard = now;
  member.not_lost_before = absl::ZeroDuration();
  member.is_awaited = false;
  return absl::OkStatus();
}

void Membership::NoteAlive(const LiveMember& process, absl::Duration when) {
  if (!CheckHolder(process.worker, process.incarnation).ok()) return;
  MemberRecord& member = members_[process.worker.value()];
  member.alive_at = std::max(member.alive_at, when);
}

std::vector<WorkerIndex> Membership::Expire(absl::Duration now) {
  std::vector<WorkerIndex> lost;
  for (size_t i = 0; i < members_.size(); ++i) {
    MemberRecord& member = members_[i];
    if (member.state != MemberState::kLive) continue;
    if (now - member.last_heard <= lease_ || now <= member.not_lost_before) continue;
    EndLease(&member, now);
    lost.push_back(WorkerIndex(static_cast<uint32_t>(i)));
  }
  return lost;
}

std::vector<LiveMember> Membership::Live() const {
  std::vector<LiveMember> live;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].state != MemberState::kLive) continue;
    live.push_back({WorkerIndex(static_cast<uint32_t>(i)), members_[i].incarnation});
  }
  return live;
}

void Membership::ForgetBefore(GlobalStep step) {
  starts_.erase(starts_.begin(), starts_.lower_bound({step, Incarnation()}));
  lost_tokens_.erase(lost_tokens_.begin(), lost_tokens_.lower_bound(step));
}

void Membership::NoteStart(const LiveMember& member, GlobalStep step) {
  ForgetBefore(step);
  starts_.insert({step, member.incarnation});
}

ReplicaCounts Membership::CountFor(GlobalStep step, absl::Span<const LiveMember> members) {
  ForgetBefore(step);
  ReplicaCounts counts{.replicas = static_cast<uint32_t>(members_.size())};
  for (const LiveMember& member : members) {
    const MemberRecord& record = members_[member.worker.value()];
    const bool has_no_data = record.incarnation == member.incarnation && record.report.out_of_data;
    ++(has_no_data ? counts.out_of_data : counts.able);
  }
  const auto after = starts_.lower_bound({step.next(), Incarnation()});
  counts.starts = std::distance(starts_.begin(), after);
  counts.lost_tokens = static_cast<int64_t>(lost_tokens_.count(step));
  return counts;
}

}  // namespace lockstep::chief
