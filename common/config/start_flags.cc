#include "common/config/start_flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/exit_code.h"

ABSL_FLAG(bool, resume, false,
          "go on where the job is: from ps that have trained, else from the newest checkpoint of "
          "its folder, else begin; for a command line that is started again and again");
ABSL_FLAG(bool, fresh, false,
          "begin at step 0 unless a ps has trained, and set the checkpoints of earlier runs in the "
          "job's folder aside");
ABSL_FLAG(std::string, restore, "",
          "go on from a checkpoint: --restore takes the newest of the job's checkpoint folder, "
          "--restore=FOLDER the one or the newest there");

namespace lockstep {
namespace {

constexpr char kBareRestore[] = "--restore";
// A literal, for the command line points to it.
constexpr char kRestoreNewest[] = "--restore=latest";

}  // namespace

std::vector<const char*> WithNewestCheckpoint(int argc, char** argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size() && !absl::StartsWith(arguments[i + 1], "-");
    if (absl::string_view(arguments[i]) == kBareRestore && !has_value)
      arguments[i] = kRestoreNewest;
  }
  return arguments;
}

absl::Status CheckStartFlags() {
  const int given = (absl::GetFlag(FLAGS_resume) ? 1 : 0) + (absl::GetFlag(FLAGS_fresh) ? 1 : 0) +
                    (absl::GetFlag(FLAGS_restore).empty() ? 0 : 1);
  if (given <= 1) return absl::OkStatus();
  return UsageError(
      "--resume, --restore and --fresh: more than one is given. Remedy: --resume to go on where "
      "the job is, --restore to go on from a checkpoint, or --fresh to begin anew");
}

}  // namespace lockstep
