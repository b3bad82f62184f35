// DescribePortHolder identifies the process that holds the port which this process wants.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace lockstep::rpc {

class Credentials;

// Asks the process that listens on `address` for half a second. FAILED_PRECONDITION when it is
// `owner` ("worker 1", "chief" for the only one) itself: the same task was started twice.
// UNAVAILABLE otherwise, with all that is known about it.
absl::Status DescribePortHolder(const std::string& address, const std::string& owner,
                                const Credentials* credentials);

}  // namespace lockstep::rpc
