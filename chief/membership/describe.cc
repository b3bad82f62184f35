#include "chief/membership/describe.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {
namespace {

// A line is to be read by somebody.
constexpr size_t kMostTold = 8;

bool IsMissing(const MemberRecord& member) {
  return member.state != MemberState::kLive || member.report.out_of_data;
}

// The first of those who are missing, or are not.
class Telling {
 public:
  Telling(const Membership& membership, absl::Duration now) : membership_(membership), now_(now) {}

  void Add(bool missing) {
    for (size_t i = 0; i < membership_.members().size(); ++i) {
      if (IsMissing(membership_.members()[i]) != missing || ++count_ > kMostTold) continue;
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
  Telling telling(membership, now);
  telling.Add(/*missing=*/true);
  return telling.Text();
}

std::string DescribeAll(const Membership& membership, absl::Duration now) {
  Telling telling(membership, now);
  telling.Add(/*missing=*/true);
  telling.Add(/*missing=*/false);
  return telling.Text();
}

}  // namespace lockstep::chief
