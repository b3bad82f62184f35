#include "tests/bench/markdown_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fs/input_file.h"
#include "tests/bench/report.h"

namespace lockstep::bench {
namespace {

using nlohmann::json;

constexpr size_t kMostResultBytes = 1 << 20;

std::string Text(const json& value) { return value.get<std::string>(); }
std::string Number(const json& value) {
  return value.is_null() ? "-" : Figure(value.get<double>());
}

// In lines of less than 120 columns, as all prose of the documents.
std::string Source(const json& results) {
  const json& machine = results["machine"];
  return absl::StrCat("Commit ", Text(results["commit"]), ", ", Text(results["date"]),
                      ", medians of ", results["rounds"].get<int>(), " runs;\n",
                      machine["cpus"].get<int>(), " CPUs of ", Text(machine["processor"]), ", ",
                      Number(machine["memory_gib"]), " GiB, ", Text(machine["kernel"]),
                      ";\nload average ", Number(results["load_average"]["start"]),
                      " at the start and ", Number(results["load_average"]["end"]), " at the end; ",
                      Text(machine["network"]), ".\n");
}

std::string Row(const json& row) {
  const std::string unit = Text(row["unit"]);
  const std::string met = row["met"].is_null() ? "-" : row["met"].get<bool>() ? "yes" : "no";
  return absl::StrCat("| `", Text(row["row"]), "` | ", Number(row["value"]), " ", unit, " | ",
                      Number(row["peer_value"]), row["peer_value"].is_null() ? "" : " " + unit,
                      " | ", Number(row["ratio"]), " | ", Number(row["target"]), " | ", met, " | ",
                      Text(row["peer"]), " |\n");
}

}  // namespace

std::string MarkdownTable(const json& results) {
  std::string text = absl::StrCat(Source(results),
                                  "\n| Row | Ours | Peer's | Ratio | Target | Met | Compared with |"
                                  "\n|---|---|---|---|---|---|---|\n");
  for (const json& row : results["rows"]) text += Row(row);
  return text;
}

absl::StatusOr<std::string> ReadMarkdownTable(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostResultBytes));
  const json results = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!results.is_object() || !results.contains("rows")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected what `bench --json` writes, got something else"));
  }
  return MarkdownTable(results);
}

}  // namespace lockstep::bench
