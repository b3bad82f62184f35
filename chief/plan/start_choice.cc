#include "chief/plan/start_choice.h"

#include "absl/flags/flag.h"
#include "common/config/start_flags.h"

namespace lockstep::chief {

StartChoice StartChoiceOfFlags() {
  if (absl::GetFlag(FLAGS_resume)) return {.mode = StartMode::kResume};
  if (absl::GetFlag(FLAGS_fresh)) return {.mode = StartMode::kFresh};
  const std::string folder = absl::GetFlag(FLAGS_restore);
  if (folder.empty()) return {.mode = StartMode::kBegin};
  return {.mode = StartMode::kRestore, .folder = folder == kNewestCheckpoint ? "" : folder};
}

}  // namespace lockstep::chief
