// Faults that strangers cause at a task whose port they reach.
#pragma once

#include <memory>
#include <string>

#include "tests/chaos/ongoing_fault.h"

namespace lockstep::test {

// 300 connections to "IP:PORT" that say nothing, until the fault is healed.
std::unique_ptr<OngoingFault> HoldIdleConnections(const std::string& address);
// 64 connections with bytes that are no HTTP/2, or that end within its first frames. Half of them
// say that no more comes; all are closed when the fault is healed.
std::unique_ptr<OngoingFault> SendGarbage(const std::string& address);
// Eight calls, one after another, in turn without a token and with that of another job.
std::unique_ptr<OngoingFault> CallWithWrongToken(const std::string& address);

}  // namespace lockstep::test
