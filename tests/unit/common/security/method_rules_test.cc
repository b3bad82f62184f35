#include "common/security/method_rules.h"

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
#include "proto/chief.pb.h"
#include "proto/job_control.pb.h"
#include "proto/peer.pb.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep::security {
namespace {

const Caller kEverybody[] = {{.role = CallerRole::kChief},
                             {.role = CallerRole::kPs, .index = 0},
                             {.role = CallerRole::kWorker, .index = 0},
                             {.role = CallerRole::kReader},
                             {.role = CallerRole::kOperator}};

std::vector<std::string> MethodsOf(const google::protobuf::FileDescriptor* file) {
  std::vector<std::string> paths;
  for (int s = 0; s < file->service_count(); ++s) {
    const auto* service = file->service(s);
    for (int m = 0; m < service->method_count(); ++m) {
      paths.push_back(absl::StrCat("/", service->full_name(), "/", service->method(m)->name()));
    }
  }
  REQUIRE(!paths.empty());
  return paths;
}

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

TEST_CASE("Every method of a job has one role that may call it, those of a copy and pings two") {
  for (const auto* file :
       {RegisterTaskRequest::descriptor()->file(), PushRequest::descriptor()->file(),
        SendRequest::descriptor()->file(), StopRequest::descriptor()->file()}) {
    for (const std::string& method : MethodsOf(file)) {
      CAPTURE(method);
      int allowed = 0;
      for (const Caller& caller : kEverybody) allowed += CheckMethod(caller, method).ok() ? 1 : 0;
      const bool is_for_two = method == "/lockstep.ParameterServer/Push" ||
                              method == "/lockstep.ParameterServer/AttachMemory" ||
                              method == "/lockstep.ParameterServer/ServerPing";
      CHECK(allowed == (is_for_two ? 2 : 1));
      CHECK_FALSE(IsOpenToAll(method));
    }
  }
}

TEST_CASE("The table of docs/security.md says what is checked") {
  const std::map<std::string, std::string> documented = DocumentedRoles();
  for (const auto* file :
       {RegisterTaskRequest::descriptor()->file(), PushRequest::descriptor()->file(),
        SendRequest::descriptor()->file(), StopRequest::descriptor()->file(),
        ProcessStatus::descriptor()->file()}) {
    for (const std::string& path : MethodsOf(file)) {
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

TEST_CASE("Whoever has a role may read the state") {
  for (const Caller& caller : kEverybody) {
    CHECK(CheckMethod(caller, "/lockstep.StatusService/GetStatus").ok());
    CHECK(
        CheckMethod(caller, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo").ok());
  }
  CHECK_FALSE(IsOpenToAll("/lockstep.StatusService/GetStatus"));
}

TEST_CASE("Orders to a ps are the chief's, gradients a worker's") {
  const Caller chief{.role = CallerRole::kChief};
  const Caller worker{.role = CallerRole::kWorker, .index = 3};
  CHECK(CheckMethod(chief, "/lockstep.ParameterServer/Save").ok());
  CHECK(absl::IsPermissionDenied(CheckMethod(worker, "/lockstep.ParameterServer/Save")));
  CHECK(CheckMethod(worker, "/lockstep.ParameterServer/Push").ok());
  const absl::Status refused = CheckMethod(chief, "/lockstep.ParameterServer/Push");
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(absl::StartsWith(refused.message(), "chief may not call /lockstep.ParameterServer/Push"));
}

TEST_CASE("An operator ends the job, and does nothing else to it") {
  const Caller who{.role = CallerRole::kOperator};
  CHECK(CheckMethod(who, "/lockstep.JobControl/Stop").ok());
  for (const char* method : {"/lockstep.ParameterServer/Finish", "/lockstep.ParameterServer/Pull",
                             "/lockstep.Chief/ReportError", "/lockstep.JobControl/Start"}) {
    CAPTURE(method);
    CHECK(absl::IsPermissionDenied(CheckMethod(who, method)));
  }
  const absl::Status refused =
      CheckMethod({.role = CallerRole::kReader}, "/lockstep.JobControl/Stop");
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(absl::StartsWith(refused.message(), "reader may not call /lockstep.JobControl/Stop"));
}

TEST_CASE("Health is open, and what the table does not name is closed to everybody") {
  CHECK(IsOpenToAll("/grpc.health.v1.Health/Check"));
  CHECK(IsOpenToAll("/grpc.health.v1.Health/Watch"));
  for (const char* method :
       {"", "/", "/lockstep.ParameterServer/", "/lockstep.ParameterServer/Pushed",
        "lockstep.Chief/Heartbeat", "/lockstep.ParameterServer/push", "/grpc.health.v1.Health/List",
        "/lockstep.Unknown/GetStatus", "/lockstep.StatusService/GetStatus/",
        "/x\n/lockstep.StatusService/GetStatus"}) {
    CAPTURE(method);
    CHECK_FALSE(IsOpenToAll(method));
    for (const Caller& caller : kEverybody) {
      const absl::Status status = CheckMethod(caller, method);
      CHECK(absl::IsPermissionDenied(status));
      CHECK_FALSE(absl::StrContains(status.message(), "\n"));
    }
  }
}

}  // namespace
}  // namespace lockstep::security
