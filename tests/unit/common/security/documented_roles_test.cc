// The table of docs/security.md beside what the methods' options say.
#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/security/method_rules.h"
#include "proto/chief.pb.h"
#include "proto/job_control.pb.h"
#include "proto/peer.pb.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep::security {
namespace {

constexpr char kFirstColumn[] = "| Methods |";

// Names of a cell such as "`Chief`: `Heartbeat` `ReportError`", the service first.
std::vector<std::string> NamesIn(absl::string_view cell) {
  std::vector<std::string> names;
  const std::vector<absl::string_view> parts = absl::StrSplit(cell, '`');
  for (size_t i = 1; i < parts.size(); i += 2) names.emplace_back(parts[i]);
  return names;
}

std::vector<std::string> CellsOf(absl::string_view line) {
  std::vector<std::string> cells;
  for (const absl::string_view cell : absl::StrSplit(line, '|')) {
    cells.emplace_back(absl::StripAsciiWhitespace(cell));
  }
  return cells;
}

// Path of each method -> "chief, ps", as the table has it.
std::map<std::string, std::string> DocumentedRoles() {
  std::map<std::string, std::string> rows;
  std::vector<std::string> columns;
  std::ifstream page("docs/security.md");
  for (std::string line; std::getline(page, line);) {
    const std::vector<std::string> cells = CellsOf(line);
    if (absl::StartsWith(line, kFirstColumn)) columns = cells;
    if (columns.empty() || cells.size() != columns.size()) continue;
    std::vector<std::string> roles;
    for (size_t i = 2; i < columns.size(); ++i) {
      if (cells[i] == "yes") roles.push_back(columns[i]);
    }
    const std::vector<std::string> names = NamesIn(cells[1]);
    for (size_t i = 1; i < names.size(); ++i) {
      rows[absl::StrCat("/lockstep.", names[0], "/", names[i])] = absl::StrJoin(roles, ", ");
    }
  }
  return rows;
}

TEST_CASE("The table of roles and methods says what is checked") {
  const std::map<std::string, std::string> documented = DocumentedRoles();
  for (const auto* message :
       {RegisterTaskRequest::descriptor(), PushRequest::descriptor(), SendRequest::descriptor(),
        StopRequest::descriptor(), ProcessStatus::descriptor()}) {
    const auto* service = message->file()->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path =
          absl::StrCat("/", service->full_name(), "/", service->method(i)->name());
      std::vector<std::string> allowed;
      for (const char* role : {"chief", "ps", "worker", "reader", "operator"}) {
        if (CheckMethod(ParseCaller(role).value(), path).ok()) allowed.push_back(role);
      }
      CAPTURE(path);
      REQUIRE(documented.contains(path));
      CHECK(documented.at(path) == absl::StrJoin(allowed, ", "));
    }
  }
}

}  // namespace
}  // namespace lockstep::security
