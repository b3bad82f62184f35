// Membership in words, for status and log.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "chief/membership/membership.h"

namespace lockstep::chief {

// "live", "lost", "absent".
absl::string_view Name(MemberState state);

// "worker 1 (host:port) was lost 12 s ago, last heard of 17 s ago", "worker 0 (host:port) waits
// for a token, last heard of 0.3 s ago", "worker 2 (host:port) is out of data since step 7".
std::string DescribeMember(const Membership& membership, WorkerIndex worker, absl::Duration now);

// Those that are not live or have no data, joined by "; "; of many the first ones, and how many
// more there are. Empty when there are none.
std::string DescribeMissing(const Membership& membership, absl::Duration now);

// Those by whom a step may be held up: the missing ones, then the live ones that do not say that
// they wait for something. Empty when there are none.
std::string DescribeBusy(const Membership& membership, absl::Duration now);

// The same of all, the missing ones first.
std::string DescribeAll(const Membership& membership, absl::Duration now);

}  // namespace lockstep::chief
