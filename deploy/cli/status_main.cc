// lockstep status: what a running process says about itself.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/exit_code.h"
#include "common/base/remedy.h"
#include "common/base/standard_streams.h"
#include "common/base/status_macros.h"
#include "common/client/status_reader.h"
#include "common/config/address.h"
#include "deploy/cli/bare_word_command.h"
#include "deploy/cli/status_json.h"
#include "deploy/cli/status_table.h"
#include "deploy/cli/tool_credentials.h"
#include "deploy/cli/watch_failure.h"

ABSL_FLAG(std::string, address, "",
          "host:port of the process; may be given without the flag's name");
ABSL_FLAG(bool, json, false, "print all of it as JSON; docs/status.md explains the fields");
ABSL_FLAG(bool, watch, false, "print it again every second, until Ctrl-C or the process ends");

namespace lockstep::deploy {
namespace {

constexpr char kName[] = "lockstep status";
constexpr char kUsage[] =
    "lockstep status ADDRESS\n"
    "\n"
    "Asks a chief, ps or worker at host:port for its state. The chief knows the whole job.\n";

constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr absl::Duration kPeriod = absl::Seconds(1);

std::string Text(const ProcessStatus& status) {
  return absl::GetFlag(FLAGS_json) ? StatusJson(status) : StatusTable(status);
}

// What comes before a status that is watched: a terminal is cleared, in a file blocks are told
// apart. JSON objects need nothing between them.
std::string Separator(bool first) {
  if (isatty(STDOUT_FILENO)) return "\033[H\033[2J";
  if (absl::GetFlag(FLAGS_json)) return "";
  return absl::StrCat(first ? "" : "\n",
                      absl::FormatTime("%Y-%m-%d %H:%M:%S\n", absl::Now(), absl::LocalTimeZone()));
}

absl::Status Show(const ProcessStatus& status, const std::string& separator) {
  std::fputs((separator + Text(status)).c_str(), stdout);
  return FlushOutput();
}

absl::Status NoProcessError(const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
  return AddRemedy(status,
                   "if the process runs, its address, which the cluster spec names and "
                   "lockstep up prints");
}

absl::StatusOr<int> ShowStatus() {
  const std::string address = absl::GetFlag(FLAGS_address);
  if (auto parsed = ParseAddress(address); !parsed.ok()) {
    return UsageError(SetRemedy(parsed.status(), "./lockstep status HOST:PORT").message());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto credentials,
                            LoadToolCredentials(address, security::CallerRole::kReader));
  const bool watch = absl::GetFlag(FLAGS_watch);
  StatusReader reader(address, credentials.get());
  absl::StatusOr<ProcessStatus> status = reader.Read(kTimeout);
  if (!status.ok()) return NoProcessError(status.status());
  LOCKSTEP_RETURN_IF_ERROR(Show(*status, watch ? Separator(/*first=*/true) : ""));
  bool is_unconnected = false;
  while (watch) {
    absl::SleepFor(kPeriod);
    status = reader.Read(kTimeout);
    if (status.ok()) {
      LOCKSTEP_RETURN_IF_ERROR(Show(*status, Separator(/*first=*/false)));
      is_unconnected = false;
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const WatchFailure failure,
                              ExplainWatchFailure(address, status.status(), is_unconnected));
    is_unconnected = IsUnconnected(status.status());
    std::fprintf(stderr, "%s: %s\n", kName, failure.line.c_str());
    if (failure.has_ended) return 0;
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::deploy

int main(int argc, char** argv) {
  using namespace lockstep::deploy;
  return RunCommand({kName, kUsage, WithCredentialFlags({"--address"})}, argc, argv, ShowStatus);
}
