// Calls of a stranger with arbitrary bytes to the methods of services on loopback.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep::fuzz {

struct ServiceCall {
  std::string service;  // "lockstep.Chief"
  std::string method;   // "Push"
  std::string message;
};

// Stays when other methods come to the service, as the corpora must keep their meaning.
uint8_t NumberOf(absl::string_view method);

// The calls that an input holds, one after the other: the number of a method of one of `services`
// ("lockstep.Chief"), or one below it and above the next lower, and the length of the message, as
// one byte and two, then the message. What does not fit ends the list.
std::vector<ServiceCall> CallsOf(absl::Span<const absl::string_view> services,
                                 absl::string_view input);

// Makes them in their order, each when the one before is answered or has been parked for 5 ms.
// Those still parked in the end are cancelled. Returns when nothing is in flight.
void MakeCalls(const std::string& address, const std::vector<ServiceCall>& calls);

}  // namespace lockstep::fuzz
