// NewOutput waits for what a process of a test says from some moment on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {

class NewOutput {
 public:
  // Counts what is said from now on.
  explicit NewOutput(Process* process) : process_(process), offset_(process->Output().size()) {}

  // False: not before `deadline`, or the process has ended.
  bool WaitFor(const std::string& text, absl::Time deadline) const {
    while (!absl::StrContains(process_->OutputFrom(offset_), text)) {
      const bool has_ended = process_->Wait(absl::Milliseconds(20)).has_value();
      if (has_ended || absl::Now() > deadline) return false;
    }
    return true;
  }

 private:
  Process* process_;
  size_t offset_;
};

// Whether each of them says `line`.
inline bool WaitForAll(const std::vector<NewOutput>& outputs, const std::string& line) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  return std::ranges::all_of(
      outputs, [&](const NewOutput& output) { return output.WaitFor(line, deadline); });
}

}  // namespace lockstep::test
