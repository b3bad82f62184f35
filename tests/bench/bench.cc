// lockstep bench: measures Lockstep beside other systems on this machine, in one table.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/annotate.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/fs/atomic_file.h"
#include "tests/bench/report.h"
#include "tests/bench/rows/rows.h"
#include "worker/device/cpu/wait_policy.h"

ABSL_FLAG(std::string, json, "", "also write the results to this file");
ABSL_FLAG(std::vector<std::string>, rows, {}, "only these rows, separated by commas");
ABSL_FLAG(int, rounds, 9, "runs of each side, taking turns; the medians are told");
ABSL_FLAG(std::string, root, ".", "where the sources are");

namespace lockstep::bench {
namespace {

constexpr char kUsage[] =
    "bench [--rows=NAME,...] [--json=FILE]\n"
    "\n"
    "Each row is a figure of Lockstep's and the same figure of a peer, measured in turns. A peer\n"
    "that is not installed is named, and the row is not met.\n";

absl::StatusOr<std::vector<Row>> ChosenRows() {
  const std::vector<std::string> names = absl::GetFlag(FLAGS_rows);
  if (names.empty()) return Rows();
  std::vector<Row> chosen;
  for (const std::string& name : names) {
    const size_t before = chosen.size();
    for (const Row& row : Rows()) {
      if (row.name == name) chosen.push_back(row);
    }
    if (chosen.size() > before) continue;
    const auto append = [](std::string* text, const Row& row) { absl::StrAppend(text, row.name); };
    return UsageError(absl::StrCat("--rows: there is no row \"", name, "\". Remedy: one of ",
                                   absl::StrJoin(Rows(), ", ", append)));
  }
  return chosen;
}

absl::Status Run() {
  BenchOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  if (options.rounds < 1) return UsageError("--rounds: expected 1 or more");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Row> rows, ChosenRows());
  std::string json_file = absl::GetFlag(FLAGS_json);
  if (!json_file.empty()) json_file = std::filesystem::absolute(json_file).string();
  const std::string root = absl::GetFlag(FLAGS_root);
  if (chdir(root.c_str()) != 0) {
    return absl::NotFoundError(absl::StrCat("--root: ", root, ": ", std::strerror(errno)));
  }

  nlohmann::json json = {{"machine", MachineJson()}, {"rows", nlohmann::json::array()}};
  PrintHeading(std::cout);
  for (const Row& row : rows) {
    const absl::StatusOr<RowResult> result = row.run(options);
    if (!result.ok()) return Annotate(result.status(), row.name);
    PrintRow(std::cout, row.name, *result);
    json["rows"].push_back(RowJson(row.name, *result));
  }
  if (json_file.empty()) return absl::OkStatus();
  return WriteFileAtomically(json_file, json.dump(2) + "\n");
}

int Main(int argc, char** argv) {
  worker::UsePassiveWaiting(argv);
  if (const FlagsResult flags = HandleFlags("bench", kUsage, argc, argv); flags.exit) {
    return static_cast<int>(flags.code);
  }
  return PrintFailure("bench", Run());
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
