#include "common/status/command_summary.h"

#include "absl/strings/ascii.h"

namespace lockstep {

CommandSummary Summarize(const CommandStatus& status, const std::string& address) {
  CommandSummary summary;
  const bool is_over = status.state() == CommandStatus::JOB_OVER;
  summary.set_state(is_over ? "over"
                            : absl::AsciiStrToLower(CommandStatus::State_Name(status.state())));
  if (status.state() == CommandStatus::NONE) return summary;
  summary.set_chief(status.chief_index());
  summary.set_address(address);
  summary.set_term(status.term());
  summary.set_lease_seconds(status.lease_ms() / 1e3);
  summary.set_lease_left_seconds(status.left_ms() / 1e3);
  return summary;
}

}  // namespace lockstep
