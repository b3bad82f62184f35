#include "tests/bench/markdown_table.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/fs/input_file.h"

namespace lockstep::bench {
namespace {

TEST_CASE("a run is told as its commit, machine and load, and a line for each row") {
  const auto results = nlohmann::json::parse(R"({
    "commit": "abc123", "date": "2026-01-02 03:04 UTC", "rounds": 9,
    "load_average": {"start": 1.25, "end": 0.5},
    "machine": {"cpus": 2, "processor": "Some CPU", "memory_gib": 24.0, "kernel": "Linux 6.1",
                "network": "reno"},
    "rows": [
      {"row": "a/peer", "value": 20.0, "unit": "ms", "peer": "The Peer", "peer_value": 30.0,
       "ratio": 1.5, "target": 2.0, "met": false},
      {"row": "b", "value": 5.0, "unit": "%", "peer": "nothing", "peer_value": null,
       "ratio": null, "target": null, "met": null}]})");
  CHECK(MarkdownTable(results) ==
        "Commit abc123, 2026-01-02 03:04 UTC, medians of 9 runs;\n"
        "2 CPUs of Some CPU, 24.0 GiB, Linux 6.1;\n"
        "load average 1.25 at the start and 0.500 at the end; reno.\n"
        "\n"
        "| Row | Ours | Peer's | Ratio | Target | Met | Compared with |\n"
        "|---|---|---|---|---|---|---|\n"
        "| `a/peer` | 20.0 ms | 30.0 ms | 1.50 | 2.00 | no | The Peer |\n"
        "| `b` | 5.00 % | - | - | - | - | nothing |\n");
}

TEST_CASE("a file without results is refused by name") {
  const auto table = ReadMarkdownTable("docs/performance.md");
  CHECK(absl::IsInvalidArgument(table.status()));
  CHECK_THAT(std::string(table.status().message()), Catch::Contains("docs/performance.md"));
}

TEST_CASE("the tables of docs/performance.md are those of the runs beside it") {
  const std::string json = GENERATE("docs/performance.json", "docs/performance_allreduce.json",
                                    "docs/performance_save.json", "docs/performance_copies.json");
  const std::string command = "./lockstep bench --table=" + json;
  const std::string begin_mark = "<!-- " + command + " -->\n";
  constexpr char kEnd[] = "<!-- end of the table -->\n";
  const absl::StatusOr<std::string> read = ReadFile("docs/performance.md", 1 << 20);
  REQUIRE(read.ok());
  const std::string& document = *read;
  const size_t begin = document.find(begin_mark);
  const size_t end = document.find(kEnd, begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const size_t first = begin + begin_mark.size();
  INFO("Remedy: put what `" << command << "` prints between the marks");
  const absl::StatusOr<std::string> table = ReadMarkdownTable(json);
  REQUIRE(table.ok());
  CHECK(document.substr(first, end - first) == *table);
}

}  // namespace
}  // namespace lockstep::bench
