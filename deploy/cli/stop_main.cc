// lockstep stop: ends a running job in order.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/remedy.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/client/status_client.h"
#include "common/client/stop_client.h"
#include "common/config/address.h"
#include "deploy/cli/bare_word_command.h"
#include "deploy/cli/stop_text.h"
#include "deploy/cli/tool_credentials.h"

ABSL_FLAG(std::string, address, "", "host:port of the chief; may be given without the flag's name");

namespace lockstep::deploy {
namespace {

constexpr char kUsage[] =
    "lockstep stop ADDRESS\n"
    "\n"
    "Ends the job of the chief at host:port, as SIGINT of the chief does: it saves the last\n"
    "committed step, then all processes end. Prints what is saved. A second stop is harmless.\n";

constexpr absl::Duration kStatusTimeout = absl::Seconds(5);

absl::Status Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return FlushOutput();
}

absl::StatusOr<int> SayEnding() {
  LOCKSTEP_RETURN_IF_ERROR(Say(EndingText()));
  return 0;
}

absl::StatusOr<int> Stop() {
  const std::string address = absl::GetFlag(FLAGS_address);
  if (auto parsed = ParseAddress(address); !parsed.ok()) {
    return UsageError(SetRemedy(parsed.status(), "./lockstep stop HOST:PORT").message());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto credentials,
                            LoadToolCredentials(address, security::CallerRole::kOperator));
  while (true) {
    const auto status = FetchStatus(address, kStatusTimeout, credentials.get());
    if (IsEnding(status.status())) return SayEnding();
    if (!status.ok()) return NoChiefError(status.status());
    LOCKSTEP_RETURN_IF_ERROR(CheckIsChief(address, *status));
    const absl::StatusOr<StopReply> reply = StopJob(address, credentials.get());
    if (absl::IsDeadlineExceeded(reply.status())) continue;
    if (IsEnding(reply.status())) return SayEnding();
    if (!reply.ok()) return StopError(reply.status());
    if (const std::string warning = StopWarning(*reply); !warning.empty()) {
      std::fputs(absl::StrCat("warning: ", warning, "\n").c_str(), stderr);
    }
    LOCKSTEP_RETURN_IF_ERROR(Say(StopText(*reply)));
    return 0;
  }
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  using namespace lockstep::deploy;
  return RunCommand({"lockstep stop", kUsage, WithCredentialFlags({"--address"})}, argc, argv,
                    Stop);
}
