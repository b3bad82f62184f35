#include "common/security/method_rules.h"

#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/chief.pb.h"
#include "proto/job_control.pb.h"
#include "proto/peer.pb.h"
#include "proto/ps.pb.h"

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

TEST_CASE("Every method that changes a job has one role that may call it, those of a copy two") {
  for (const auto* file :
       {RegisterTaskRequest::descriptor()->file(), PushRequest::descriptor()->file(),
        SendRequest::descriptor()->file(), StopRequest::descriptor()->file()}) {
    for (const std::string& method : MethodsOf(file)) {
      CAPTURE(method);
      int allowed = 0;
      for (const Caller& caller : kEverybody) allowed += CheckMethod(caller, method).ok() ? 1 : 0;
      const bool is_for_primaries = method == "/lockstep.ParameterServer/Push" ||
                                    method == "/lockstep.ParameterServer/AttachMemory";
      CHECK(allowed == (is_for_primaries ? 2 : 1));
      CHECK_FALSE(IsOpenToAll(method));
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
