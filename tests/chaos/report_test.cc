#include "tests/chaos/report.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

FaultOutcome Kill(absl::Duration pause, bool is_alone = true) {
  return {.fault = {FaultKind::kKill, FaultTarget::kPs},
          .is_alone = is_alone,
          .pause = pause,
          .allowed = absl::Seconds(10)};
}

nlohmann::json RowOf(const nlohmann::json& report, const std::string& fault,
                     const std::string& role) {
  for (const auto& row : report["rows"]) {
    if (row["fault"] == fault && row["role"] == role) return row;
  }
  return nullptr;
}

TEST_CASE("a row counts its faults and has the worst of those that were alone") {
  ChaosReport report(AllFaults());
  FaultOutcome seen = Kill(absl::Seconds(2));
  seen.detected_after = absl::Milliseconds(1500);
  seen.detected_by = "chief 0";
  report.Add(seen);
  report.Add(Kill(absl::Seconds(11)));
  report.Add(Kill(absl::Seconds(60), /*is_alone=*/false));
  report.AddDefect("worker 0 ended with 70");
  const auto json = nlohmann::json::parse(report.Json(5, 300));
  CHECK(json["seed"] == 5);
  CHECK(json["faults"] == 3);
  CHECK(json["steps"] == 300);
  CHECK(json["rows"].size() == AllFaults().size());
  CHECK(json["defects"] == nlohmann::json{"worker 0 ended with 70"});
  const auto row = RowOf(json, "kill -9", "ps");
  CHECK(row["documented_as"] == "F06, F07, F08");
  CHECK(row["injected"] == 3);
  CHECK(row["detected"] == 1);
  CHECK(row["detected_by"] == "chief 0");
  CHECK(row["detected_after_seconds"] == 1.5);
  CHECK(row["met"] == 1);
  CHECK(row["longest_pause_seconds"] == 11);
  CHECK(row["allowed_pause_seconds"] == 10);
  CHECK_THAT(report.Table(), Contains("kill -9") && Contains("chief 0") && Contains("1 of 3"));
}

TEST_CASE("a fault that was not injected has a row without figures") {
  const ChaosReport report(AllFaults());
  const auto row = RowOf(nlohmann::json::parse(report.Json(1, 0)), "full disk", "ps");
  CHECK(row["injected"] == 0);
  CHECK_FALSE(row.contains("longest_pause_seconds"));
  CHECK_FALSE(row.contains("detected_by"));
}

TEST_CASE("a fault that no daemon logs has no number of detections") {
  const ChaosReport report(AllFaults());
  const auto json = nlohmann::json::parse(report.Json(1, 0));
  CHECK_FALSE(RowOf(json, "300 idle peers", "ps").contains("detected"));
  CHECK(RowOf(json, "no descriptors", "ps")["detected"] == 0);
}

// The rows of docs/faults.md: one begins "| F20, F21 killed at any moment".
std::set<std::string> RowsOfPage() {
  std::ifstream file("docs/faults.md");
  std::set<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| F") || absl::StartsWith(line, "| Fault")) continue;
    for (absl::string_view word : absl::StrSplit(line.substr(2), ' ')) {
      const bool has_more = absl::ConsumeSuffix(&word, ",");
      rows.emplace(word);
      if (!has_more) break;
    }
  }
  return rows;
}

TEST_CASE("the report names each row of docs/faults.md, and no other") {
  const std::vector<std::string> rows = DocumentedRows();
  CHECK(std::set<std::string>(rows.begin(), rows.end()) == RowsOfPage());
}

TEST_CASE("each fault has its row in docs/faults.md") {
  const std::vector<std::string> rows = DocumentedRows();
  std::vector<Fault> faults = AllFaults();
  AddFaultsOfTokens(&faults);
  const std::vector<Fault> of_hosts = FaultsOfHosts(/*has_copies=*/true);
  faults.insert(faults.end(), of_hosts.begin(), of_hosts.end());
  for (const Fault& fault : faults) {
    CAPTURE(NameOf(fault.kind), TargetsOf(fault));
    const std::vector<std::string> of_fault = absl::StrSplit(DocumentedAs(fault), ", ");
    for (const std::string& row : of_fault) {
      CHECK(std::ranges::find(rows, row) != rows.end());
      CHECK(IsDocumentedAs(fault, row));
    }
    CHECK_FALSE(IsDocumentedAs(fault, "F05"));
  }
}

TEST_CASE("the report says of each row of docs/faults.md by which faults it was injected") {
  ChaosReport report(AllFaults());
  for (int i = 0; i < 2; ++i) report.Add(Kill(absl::Seconds(1)));
  report.Add({.fault = {FaultKind::kKill, FaultTarget::kPair}});
  const auto documented = nlohmann::json::parse(report.Json(1, 0))["documented"];
  REQUIRE(documented.size() == 52);
  const auto lost_ps = documented[6];
  CHECK(lost_ps["row"] == "F07");
  CHECK(lost_ps["injected"] == 3);
  CHECK(lost_ps["injected_by"] == nlohmann::json{"kill -9 of ps", "kill -9 of ps + copy"});
  CHECK_FALSE(lost_ps.contains("note"));
  const auto not_injected = documented[51];
  CHECK(not_injected["row"] == "F52");
  CHECK(not_injected["injected"] == 0);
  CHECK(not_injected["injected_by"].empty());
  CHECK(not_injected["note"] == "not injected here: docs/faults.md");
  const std::vector<std::string> lines = absl::StrSplit(report.Table(), '\n');
  const auto line_of = [&](const std::string& row) {
    return *std::ranges::find_if(lines, [&](const std::string& line) {
      return absl::StartsWith(line, row + " ") && !absl::StrContains(line, " of 0");
    });
  };
  CHECK_THAT(line_of("F08"), Contains("kill -9 of ps") && Contains(" 2 "));
  CHECK_THAT(line_of("F52"), Contains("not injected here: docs/faults.md"));
}

TEST_CASE("the end of all tasks at once is a fault that nothing comes beside") {
  const Fault all = {FaultKind::kKill, FaultTarget::kAll};
  CHECK(DocumentedAs(all) == "F46");
  CHECK(TargetsOf(all) == "all tasks");
  CHECK(AllowedPause(all, absl::Seconds(2)) == absl::Seconds(10));
  for (const Fault& fault : AllFaults()) {
    CAPTURE(NameOf(fault.kind), TargetsOf(fault));
    CHECK(MayOverlap(all, fault));
    CHECK(MayOverlap(fault, all));
  }
}

TEST_CASE("a fault between two tasks has a row that names both, and the direction that is cut") {
  const Fault one_way = {FaultKind::kOneWayPartition, FaultTarget::kWorker, FaultTarget::kPs};
  const Fault back = {FaultKind::kOneWayPartition, FaultTarget::kPs, FaultTarget::kWorker};
  const Fault both = {FaultKind::kPairPartition, FaultTarget::kWorker, FaultTarget::kPs};
  ChaosReport report({one_way, back, both});
  report.Add({.fault = back});
  for (const absl::Duration after :
       {absl::Seconds(2), absl::Seconds(3), absl::InfiniteDuration()}) {
    report.Add({.fault = both, .is_to_be_named_by_both = true, .detected_by_both_after = after});
  }
  report.Add({.fault = both});
  const auto json = nlohmann::json::parse(report.Json(1, 0));
  CHECK(RowOf(json, "one way cut", "worker -> ps")["injected"] == 0);
  CHECK(RowOf(json, "one way cut", "ps -> worker")["injected"] == 1);
  CHECK(RowOf(json, "one way cut", "ps -> worker")["to_be_named_by_both"] == 0);
  const auto cut = RowOf(json, "partition", "worker <-> ps");
  CHECK(cut["injected"] == 4);
  CHECK(cut["to_be_named_by_both"] == 3);
  CHECK(cut["named_by_both"] == 2);
  CHECK(cut["named_by_both_after_seconds"] == 3);
  CHECK_THAT(report.Table(), Contains("2 of 3"));
}

TEST_CASE("no two rows have the same names") {
  const auto faults = GENERATE(AllFaults(), FaultsOfHosts(/*has_copies=*/true));
  std::set<std::pair<std::string, std::string>> names;
  for (const Fault& fault : faults) {
    names.emplace(std::string(NameOf(fault.kind)), TargetsOf(fault));
  }
  CHECK(names.size() == faults.size());
}

TEST_CASE("ps without copies do not talk, so they are not cut off from each other") {
  const auto between_ps = [](const Fault& fault) {
    return fault.target == FaultTarget::kPs && fault.peer == FaultTarget::kPs;
  };
  CHECK(std::ranges::none_of(FaultsOfHosts(/*has_copies=*/false), between_ps));
  CHECK(std::ranges::count_if(FaultsOfHosts(/*has_copies=*/true), between_ps) == 2);
}

TEST_CASE("both sides have to name a cut that lasts for a lease and a second") {
  const absl::Duration lease = absl::Seconds(2);
  Fault cut = {FaultKind::kPairPartition, FaultTarget::kWorker, FaultTarget::kPs};
  cut.lasts = absl::Milliseconds(2999);
  CHECK_FALSE(IsToBeNamedByBoth(cut, lease));
  cut.lasts = absl::Seconds(3);
  CHECK(IsToBeNamedByBoth(cut, lease));
  cut.peer.reset();
  CHECK_FALSE(IsToBeNamedByBoth(cut, lease));
}

TEST_CASE("a fault of a task that is not needed may cost less than one of a ps") {
  const absl::Duration lease = absl::Seconds(2);
  const auto allowed = [&](FaultKind kind, FaultTarget target, absl::Duration lasts) {
    return AllowedPause({.kind = kind, .target = target, .lasts = lasts}, lease);
  };
  CHECK(allowed(FaultKind::kStop, FaultTarget::kStandby, absl::Seconds(9)) == absl::Seconds(1));
  CHECK(allowed(FaultKind::kKill, FaultTarget::kChief, absl::ZeroDuration()) == absl::Seconds(3));
  CHECK(allowed(FaultKind::kKill, FaultTarget::kPair, absl::ZeroDuration()) == absl::Seconds(10));
  CHECK(allowed(FaultKind::kFullDisk, FaultTarget::kPs, absl::ZeroDuration()) == absl::Seconds(10));
  CHECK(allowed(FaultKind::kKillInSave, FaultTarget::kPs, absl::ZeroDuration()) ==
        absl::Seconds(10));
  CHECK(allowed(FaultKind::kKillInSave, FaultTarget::kChief, absl::ZeroDuration()) ==
        absl::Seconds(3));
  CHECK(allowed(FaultKind::kRollingRestart, FaultTarget::kAll, absl::ZeroDuration()) ==
        absl::Seconds(10));
  CHECK(allowed(FaultKind::kPartition, FaultTarget::kPs, absl::Seconds(4)) == absl::Seconds(7));
  CHECK(allowed(FaultKind::kHostGone, FaultTarget::kWorker, absl::Seconds(4)) == absl::Seconds(7));
  for (const FaultKind kind : {FaultKind::kFewDescriptors, FaultKind::kIdleConnections,
                               FaultKind::kGarbage, FaultKind::kWrongToken}) {
    CHECK(IsOfStrangers(kind));
    CHECK(allowed(kind, FaultTarget::kPs, absl::Seconds(2)) == absl::Seconds(1));
  }
  CHECK_FALSE(IsOfStrangers(FaultKind::kReset));
  const Fault to_standby = {FaultKind::kOneWayPartition, FaultTarget::kPs, FaultTarget::kStandby};
  CHECK(AllowedPause(to_standby, lease) == absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep::test
