// lockstep bench: measures Lockstep beside other systems on this machine, in one table.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/config/flags.h"
#include "common/fs/atomic_file.h"
#include "tests/bench/gpu/rows.h"
#include "tests/bench/loopback.h"
#include "tests/bench/markdown_table.h"
#include "tests/bench/report.h"
#include "tests/bench/rows/rows.h"
#include "worker/device/cpu/wait_policy.h"

ABSL_FLAG(std::string, json, "", "also write the results to this file");
ABSL_FLAG(std::string, table, "", "measure nothing: print these results, a JSON file, as Markdown");
ABSL_FLAG(std::string, commit, "unknown", "what the results are of, for --json");
ABSL_FLAG(std::vector<std::string>, rows, {}, "only these rows, separated by commas");
ABSL_FLAG(int, rounds, 9, "runs of each side, taking turns; the medians are told");
ABSL_FLAG(std::string, peers_dir, ".cache/lockstep/peers", "where the peers that we build are");
ABSL_FLAG(std::string, tensorflow, ".cache/lockstep/tensorflow/bin/python3",
          "Python of an environment with TensorFlow");
ABSL_FLAG(std::string, torch, ".cache/lockstep/torch/bin/python3",
          "Python of an environment with PyTorch");
ABSL_FLAG(std::string, root, ".", "where the sources are");
ABSL_FLAG(bool, gpu, false, "the rows of this machine's first GPU, and none but these");

namespace lockstep::bench {
namespace {

constexpr char kUsage[] =
    "bench [--gpu] [--rows=NAME,...] [--json=FILE]\n"
    "\n"
    "Each row is a figure of Lockstep's and the same figure of a peer, measured in turns. A peer\n"
    "that is not installed is named, and the row is not met: ./lockstep bench --peers installs\n"
    "them. --rows=step_shm_2w is that row against each of its peers.\n";

const std::vector<RowGroup>& Groups() { return absl::GetFlag(FLAGS_gpu) ? gpu::Rows() : Rows(); }

// "step_shm_2w" names itself and "step_shm_2w/gloo".
bool IsNamed(const std::string& row, const std::string& name) {
  return row == name || absl::StartsWith(row, name + "/");
}

absl::StatusOr<std::vector<std::string>> ChosenRows() {
  std::vector<std::string> all;
  for (const RowGroup& group : Groups())
    all.insert(all.end(), group.names.begin(), group.names.end());
  const std::vector<std::string> names = absl::GetFlag(FLAGS_rows);
  if (names.empty()) return all;
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    const size_t before = chosen.size();
    std::ranges::copy_if(all, std::back_inserter(chosen),
                         [&](const std::string& row) { return IsNamed(row, name); });
    if (chosen.size() > before) continue;
    return UsageError(absl::StrCat("--rows: there is no row \"", name, "\". Remedy: one of ",
                                   absl::StrJoin(all, ", ")));
  }
  return chosen;
}

// Prints each row and adds it to `json`. The first error, after everything else was measured all
// the same.
absl::Status MeasureRows(const BenchOptions& options, const std::vector<std::string>& rows,
                         nlohmann::json* json) {
  PrintHeading(std::cout);
  absl::Status failure;
  for (const RowGroup& group : Groups()) {
    std::vector<std::string> wanted;
    std::ranges::copy_if(group.names, std::back_inserter(wanted), [&](const std::string& name) {
      return std::ranges::find(rows, name) != rows.end();
    });
    if (wanted.empty()) continue;
    std::vector<RowResult> results;
    const absl::Status measured = group.run(options, wanted, &results);
    failure.Update(measured);
    if (!measured.ok()) std::cout << measured.message() << std::endl;
    for (const RowResult& result : results) {
      PrintRow(std::cout, result);
      json->push_back(RowJson(result));
    }
  }
  return failure;
}

absl::Status PrintTable(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string table, ReadMarkdownTable(path));
  std::cout << table;
  return absl::OkStatus();
}

absl::Status RunBench(const std::string& network) {
  BenchOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  if (options.rounds < 1) return UsageError("--rounds: expected 1 or more");
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> rows, ChosenRows());
  std::string json_file = absl::GetFlag(FLAGS_json);
  if (!json_file.empty()) json_file = std::filesystem::absolute(json_file).string();
  const std::string root = absl::GetFlag(FLAGS_root);
  if (chdir(root.c_str()) != 0) {
    return absl::NotFoundError(absl::StrCat("--root: ", root, ": ", std::strerror(errno)));
  }

  options.peers_dir = std::filesystem::absolute(absl::GetFlag(FLAGS_peers_dir)).string();
  options.tensorflow_python = std::filesystem::absolute(absl::GetFlag(FLAGS_tensorflow)).string();
  options.torch_python = std::filesystem::absolute(absl::GetFlag(FLAGS_torch)).string();
  options.network = network;

  nlohmann::json json = {
      {"commit", absl::GetFlag(FLAGS_commit)},
      {"date", absl::FormatTime("%Y-%m-%d %H:%M UTC", Clock::Real()->Wall(), absl::UTCTimeZone())},
      {"rounds", options.rounds},
      {"machine", MachineJson()},
      {"rows", nlohmann::json::array()}};
  json["machine"]["network"] = network;
  json["load_average"]["start"] = LoadAverage();
  const absl::Status measured = MeasureRows(options, rows, &json["rows"]);
  json["load_average"]["end"] = LoadAverage();
  if (!json_file.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(json_file, json.dump(2) + "\n"));
  }
  return measured;
}

int Main(int argc, char** argv) {
  worker::UsePassiveWaiting(argv);
  const std::string network = PrepareLoopback();
  if (const FlagsResult flags = HandleFlags("bench", kUsage, argc, argv); flags.exit) {
    return static_cast<int>(flags.code);
  }
  const std::string table = absl::GetFlag(FLAGS_table);
  return PrintFailure("bench", table.empty() ? RunBench(network) : PrintTable(table));
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { return lockstep::bench::Main(argc, argv); }
