#include "chief/membership/describe.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {
namespace {

// A line is to be read by somebody.
constexpr size_t kMostTold = 8;

template <typename Wanted>
std::string Describe(const Membership& membership, absl::Duration now, Wanted wanted) {
  std::vector<std::string> parts;
  size_t count = 0;
  for (size_t i = 0; i < membership.members().size(); ++i) {
    if (!wanted(membership.members()[i]) || ++count > kMostTold) continue;
    parts.push_back(DescribeMember(membership, WorkerIndex(static_cast<uint32_t>(i)), now));
  }
  if (count > kMostTold) parts.push_back(absl::StrCat(count - kMostTold, " more"));
  return absl::StrJoin(parts, "; ");
}

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

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

std::string DescribeMember(const Membership& membership, WorkerIndex worker, absl::Duration now) {
  const MemberRecord& member = membership.members()[worker.value()];
  const std::string name = absl::StrCat("worker ", worker.value(), " (", member.address, ")");
  switch (member.state) {
    case MemberState::kAbsent:
      return absl::StrCat(name, " has not registered");
    case MemberState::kLost:
      return absl::StrCat(name, " was lost ", Seconds(now - member.lost_since),
                          " ago, last heard of ", Seconds(now - member.last_heard), " ago");
    case MemberState::kLive:
      break;
  }
  if (member.report.out_of_data) {
    return absl::StrCat(name, " is out of data since step ", member.report.local_step.value());
  }
  return absl::StrCat(name,
                      member.report.waiting_for.empty()
                          ? absl::StrCat(" computes step ", member.report.local_step.value())
                          : absl::StrCat(" waits for ", member.report.waiting_for),
                      ", last heard of ", Seconds(now - member.last_heard), " ago");
}

std::string DescribeMissing(const Membership& membership, absl::Duration now) {
  return Describe(membership, now, [](const MemberRecord& member) {
    return member.state != MemberState::kLive || member.report.out_of_data;
  });
}

std::string DescribeAll(const Membership& membership, absl::Duration now) {
  return Describe(membership, now, [](const MemberRecord&) { return true; });
}

}  // namespace lockstep::chief
