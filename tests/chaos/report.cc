#include "tests/chaos/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "deploy/cli/text_table.h"
#include "tests/chaos/sign.h"

namespace lockstep::test {
namespace {

constexpr char kNotInjected[] = "not injected here: docs/faults.md";

// Whether a daemon tells of such a fault.
bool IsLogged(const Fault& fault) { return SignOf(fault).log != Sign::Log::kNobodies; }

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.2f", absl::ToDoubleSeconds(duration));
}

}  // namespace

struct ChaosReport::Row {
  Fault fault;
  int injected = 0, alone = 0, detected = 0, met = 0;
  std::string detected_by;  // of the slowest detection
  absl::Duration slowest_detection;
  int to_be_named_by_both = 0, by_both = 0;
  absl::Duration slowest_by_both;
  absl::Duration longest;  // of the faults that were alone
  absl::Duration allowed;  // with that one
};

struct ChaosReport::DocumentedRow {
  std::string id;
  std::vector<std::string> injected_by;  // "kill -9 of ps"
  int injected = 0;
};

std::vector<ChaosReport::Row> ChaosReport::Rows() const {
  std::vector<Row> rows;
  for (const Fault& fault : rows_) {
    Row row = {.fault = fault};
    for (const FaultOutcome& outcome : outcomes_) {
      if (!SameRow(outcome.fault, fault)) continue;
      ++row.injected;
      row.met += outcome.pause <= outcome.allowed;
      if (outcome.detected_after != absl::InfiniteDuration()) {
        ++row.detected;
        if (outcome.detected_after >= row.slowest_detection) {
          row.slowest_detection = outcome.detected_after;
          row.detected_by = outcome.detected_by;
        }
      }
      row.to_be_named_by_both += outcome.is_to_be_named_by_both;
      if (outcome.is_to_be_named_by_both &&
          outcome.detected_by_both_after != absl::InfiniteDuration()) {
        ++row.by_both;
        row.slowest_by_both = std::max(row.slowest_by_both, outcome.detected_by_both_after);
      }
      if (!outcome.is_alone) continue;
      ++row.alone;
      if (outcome.pause >= row.longest) {
        row.longest = outcome.pause;
        row.allowed = outcome.allowed;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ChaosReport::DocumentedRow> ChaosReport::RowsOfPage() const {
  const std::vector<Row> rows = Rows();
  std::vector<DocumentedRow> documented;
  for (const std::string& id : DocumentedRows()) {
    DocumentedRow of_page = {.id = id};
    for (const Row& row : rows) {
      if (row.injected == 0 || !IsDocumentedAs(row.fault, id)) continue;
      of_page.injected += row.injected;
      of_page.injected_by.push_back(
          absl::StrCat(NameOf(row.fault.kind), " of ", TargetsOf(row.fault)));
    }
    documented.push_back(std::move(of_page));
  }
  return documented;
}

std::string ChaosReport::TableOfPage() const {
  std::vector<std::vector<std::string>> lines = {{"row", "injected", "by"}};
  for (const DocumentedRow& row : RowsOfPage()) {
    lines.push_back({row.id, absl::StrCat(row.injected),
                     row.injected > 0 ? absl::StrJoin(row.injected_by, ", ") : kNotInjected});
  }
  return deploy::TextTable(lines);
}

std::string ChaosReport::Table() const {
  std::vector<std::vector<std::string>> lines = {{"row", "fault", "of", "injected", "detected",
                                                  "by", "after s", "by both", "after s",
                                                  "longest pause s", "allowed s", "met"}};
  for (const Row& row : Rows()) {
    lines.push_back(
        {std::string(DocumentedAs(row.fault)), std::string(NameOf(row.fault.kind)),
         TargetsOf(row.fault), absl::StrCat(row.injected),
         IsLogged(row.fault) ? absl::StrCat(row.detected) : "-",
         row.detected > 0 ? row.detected_by : "-",
         row.detected > 0 ? Seconds(row.slowest_detection) : "-",
         row.to_be_named_by_both > 0 ? absl::StrCat(row.by_both, " of ", row.to_be_named_by_both)
                                     : "-",
         row.by_both > 0 ? Seconds(row.slowest_by_both) : "-",
         row.alone > 0 ? Seconds(row.longest) : "-", row.alone > 0 ? Seconds(row.allowed) : "-",
         absl::StrCat(row.met, " of ", row.injected)});
  }
  return absl::StrCat(deploy::TextTable(lines), "\n", TableOfPage());
}

std::string ChaosReport::Json(uint64_t seed, int64_t steps) const {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : Rows()) {
    nlohmann::json json = {{"documented_as", std::string(DocumentedAs(row.fault))},
                           {"fault", std::string(NameOf(row.fault.kind))},
                           {"role", TargetsOf(row.fault)},
                           {"injected", row.injected},
                           {"met", row.met}};
    if (IsLogged(row.fault)) json["detected"] = row.detected;
    if (row.detected > 0) {
      json["detected_by"] = row.detected_by;
      json["detected_after_seconds"] = absl::ToDoubleSeconds(row.slowest_detection);
    }
    if (row.fault.peer.has_value()) {
      json["to_be_named_by_both"] = row.to_be_named_by_both;
      json["named_by_both"] = row.by_both;
    }
    if (row.by_both > 0) {
      json["named_by_both_after_seconds"] = absl::ToDoubleSeconds(row.slowest_by_both);
    }
    if (row.alone > 0) {
      json["longest_pause_seconds"] = absl::ToDoubleSeconds(row.longest);
      json["allowed_pause_seconds"] = absl::ToDoubleSeconds(row.allowed);
    }
    rows.push_back(std::move(json));
  }
  nlohmann::json documented = nlohmann::json::array();
  for (const DocumentedRow& row : RowsOfPage()) {
    nlohmann::json json = {
        {"row", row.id}, {"injected", row.injected}, {"injected_by", row.injected_by}};
    if (row.injected == 0) json["note"] = kNotInjected;
    documented.push_back(std::move(json));
  }
  const nlohmann::json all = {{"seed", seed},
                              {"faults", outcomes_.size()},
                              {"steps", steps},
                              {"rows", std::move(rows)},
                              {"documented", std::move(documented)},
                              {"defects", defects_}};
  return all.dump(2) + "\n";
}

}  // namespace lockstep::test
