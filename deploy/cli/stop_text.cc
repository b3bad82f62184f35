#include "deploy/cli/stop_text.h"

#include "absl/strings/str_cat.h"
#include "common/base/chief_stopping.h"
#include "common/base/exit_code.h"
#include "common/base/printable.h"
#include "common/base/quantity.h"
#include "common/base/remedy.h"

namespace lockstep::deploy {
namespace {

constexpr char kRightAddress[] = "the address of the chief, which the cluster spec names";
// Of a path or an error of a chief.
constexpr size_t kShownBytes = 4096;

std::string End(const StopReply& reply) {
  const int code = reply.exit_code();
  if (code == static_cast<int>(ExitCode::kInterrupted)) {
    return absl::StrCat("the job has ended at step ", WithCommas(reply.global_step()));
  }
  if (code == 0) return "the job was done";
  return absl::StrCat("the job was ending already, with exit code ", code, ": ",
                      Printable(reply.reason(), kShownBytes));
}

}  // namespace

absl::Status CheckIsChief(const std::string& address, const ProcessStatus& status) {
  const CommandSummary& commander = status.standby_of();
  if (commander.state() == "held" && !commander.address().empty()) {
    const std::string other = Printable(commander.address(), kShownBytes);
    return UsageError(absl::StrCat(address, " is chief ", status.task(),
                                   ", which stands by for chief ", commander.chief(), " (", other,
                                   "). Remedy: the same command with ", other));
  }
  if (status.role() == "chief") return absl::OkStatus();
  return UsageError(absl::StrCat(address, " is ", Printable(status.role(), kShownBytes), " ",
                                 status.task(), ", and not the chief. Remedy: ", kRightAddress));
}

std::string StopText(const StopReply& reply) {
  std::string text = absl::StrCat(End(reply), "\n");
  if (!reply.checkpoint().empty()) {
    absl::StrAppend(&text, "checkpoint of step ", WithCommas(reply.checkpoint_step()), ": ",
                    Printable(reply.checkpoint(), kShownBytes), "\n");
  }
  return text;
}

std::string StopWarning(const StopReply& reply) {
  if (reply.save_error().empty()) return "";
  return absl::StrCat("the last step is not saved: ", Printable(reply.save_error(), kShownBytes));
}

bool IsEnding(const absl::Status& status) {
  return IsChiefStopping(status) || absl::IsCancelled(status);
}

std::string EndingText() { return "the chief exits; its log says whether the job has ended\n"; }

absl::Status NoChiefError(const absl::Status& status) {
  if (absl::IsUnimplemented(status)) return UsageError(SetRemedy(status, kRightAddress).message());
  const bool is_silent = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return is_silent ? AddRemedy(status, absl::StrCat("if the job runs, ", kRightAddress)) : status;
}

absl::Status StopError(const absl::Status& status) {
  if (absl::IsPermissionDenied(status)) {
    return SetRemedy(status,
                     "the token of the job, a credential that ./lockstep token FILE "
                     "--of=TOKEN_FILE --role=operator makes, or an operator's certificate");
  }
  // It was there a moment ago.
  if (absl::IsUnavailable(status)) {
    return AddRemedy(status, "its log says what became of it; the same command again if it runs");
  }
  return absl::IsUnimplemented(status) ? NoChiefError(status) : status;
}

}  // namespace lockstep::deploy
