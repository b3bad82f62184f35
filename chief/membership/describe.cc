#include "chief/membership/describe.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/quantity.h"

namespace lockstep::chief {
namespace {

// A line is to be read by somebody.
constexpr size_t kMostTold = 8;

bool IsMissing(const MemberRecord& member) {
  return member.state != MemberState::kLive || member.report.out_of_data;
}

bool IsBusy(const MemberRecord& member) {
  return !IsMissing(member) && member.report.waiting_for.empty();
}

bool OnlyWaits(const MemberRecord& member) { return !IsMissing(member) && !IsBusy(member); }

// The first members of each kind that is asked for, and the number of the others.
class Telling {
 public:
  Telling(const Membership& membership, absl::Duration now) : membership_(membership), now_(now) {}

  void Add(bool (*wanted)(const MemberRecord&)) {
    for (size_t i = 0; i < membership_.members().size(); ++i) {
      if (!wanted(membership_.members()[i]) || ++count_ > kMostTold) continue;
      parts_.push_back(DescribeMember(membership_, WorkerIndex(static_cast<uint32_t>(i)), now_));
    }
  }
  std::string Text() const {
    std::string text = absl::StrJoin(parts_, "; ");
    if (count_ > kMostTold) absl::StrAppend(&text, "; ", count_ - kMostTold, " more");
    return text;
  }

 private:
  const Membership& membership_;
  const absl::Duration now_;
  std::vector<std::string> parts_;
  size_t count_ = 0;
};

}  // namespace

absl::string_view Name(MemberState state) {
  switch (state) {
    case MemberState::kAbsent:
      return "absent";
    case MemberState::kLive:
      return "live";
    case MemberState::kLost:
      return "lost";
  }
  return "unknown";
}

std::string DescribeMember(const Membership& membership, WorkerIndex worker, absl::Duration now) {
  const MemberRecord& member = membership.members()[worker.value()];
  const std::string name = absl::StrCat("worker ", worker.value(), " (", member.address, ")");
  switch (member.state) {
    case MemberState::kAbsent:
      return absl::StrCat(name, " has not registered");
    case MemberState::kLost:
      return absl::StrCat(name, " was lost ", DurationText(now - member.lost_since),
                          " ago, last heard of ", DurationText(now - member.last_heard), " ago");
    case MemberState::kLive:
      break;
  }
  if (member.report.out_of_data) {
    return absl::StrCat(name, " is out of data since step ",
                        WithCommas(member.report.local_step.value()));
  }
  return absl::StrCat(
      name,
      member.report.waiting_for.empty()
          ? absl::StrCat(" computes step ", WithCommas(member.report.local_step.value()))
          : absl::StrCat(" waits for ", member.report.waiting_for),
      ", last heard of ", DurationText(now - member.last_heard), " ago");
}

std::string DescribeMissing(const Membership& membership, absl::Duration now) {
  Telling telling(membership, now);
  telling.Add(IsMissing);
  return telling.Text();
}

std::string DescribeBusy(const Membership& membership, absl::Duration now) {
  Telling telling(membership, now);
  telling.Add(IsMissing);
  telling.Add(IsBusy);
  return telling.Text();
}

std::string DescribeAll(const Membership& membership, absl::Duration now) {
  Telling telling(membership, now);
  telling.Add(IsMissing);
  telling.Add(IsBusy);
  telling.Add(OnlyWaits);
  return telling.Text();
}

}  // namespace lockstep::chief
