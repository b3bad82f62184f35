// CHECK for what no input can break. A failed check is a bug: it prints the condition and ends the
// process with SIGABRT. What a peer, a file or a user can cause is an absl::Status instead.
#pragma once

namespace lockstep::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace lockstep::internal

#define LOCKSTEP_CHECK(condition)     \
  ((condition) ? static_cast<void>(0) \
               : ::lockstep::internal::CheckFailed(#condition, __FILE__, __LINE__))
