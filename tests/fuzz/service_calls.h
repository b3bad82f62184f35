// Calls of a stranger with arbitrary bytes to the methods of a service on loopback.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::fuzz {

struct ServiceCall {
  std::string method;  // "Push"
  std::string message;
};

// The calls that an input holds, one after the other: the number of the method in `service`
// ("lockstep.Chief") and the length of the message, as one byte and two, then the message. What
// does not fit ends the list.
std::vector<ServiceCall> CallsOf(absl::string_view service, absl::string_view input);

// Makes them in their order, each when the one before is answered or has been parked for 5 ms.
// Those still parked in the end are cancelled. Returns when nothing is in flight.
void MakeCalls(const std::string& address, absl::string_view service,
               const std::vector<ServiceCall>& calls);

}  // namespace lockstep::fuzz
