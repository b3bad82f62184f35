// Who may call what where the processes of a job share a token or have certificates, asked with a
// stock gRPC client.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/interop/python.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

constexpr int kForeverSteps = 1'000'000;

// Written down here once more: the table of the product is not asked.
const std::set<std::string> kOpen = {"/grpc.health.v1.Health/Check"};
const std::set<std::string> kState = {
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.channelz.v1.Channelz/GetServers", "/lockstep.StatusService/GetStatus"};
const std::set<std::string> kStop = {"/lockstep.JobControl/Stop"};
const std::set<std::string> kOrders = {
    "/lockstep.ParameterServer/GetView",         "/lockstep.ParameterServer/SetView",
    "/lockstep.ParameterServer/CreateVariables", "/lockstep.ParameterServer/Grant",
    "/lockstep.ParameterServer/CommitStep",      "/lockstep.ParameterServer/Save",
    "/lockstep.ParameterServer/ReleaseSnapshot", "/lockstep.ParameterServer/Finish",
    "/lockstep.ParameterServer/RenewLease",      "/lockstep.ParameterServer/WatchCommand",
    "/lockstep.ParameterServer/ServerPing"};
const std::set<std::string> kWork = {"/lockstep.ParameterServer/Push",
                                     "/lockstep.ParameterServer/Pull",
                                     "/lockstep.ParameterServer/DequeueToken",
                                     "/lockstep.ParameterServer/StoreVersion",
                                     "/lockstep.ParameterServer/AttachMemory",
                                     "/lockstep.ParameterServer/Ping",
                                     "/lockstep.Chief/RegisterTask",
                                     "/lockstep.Chief/Heartbeat",
                                     "/lockstep.Chief/ReportError",
                                     "/lockstep.Peer/Compare",
                                     "/lockstep.Peer/Send",
                                     "/lockstep.Peer/Probe",
                                     "/lockstep.Peer/AttachMemory",
                                     "/lockstep.Peer/ReadState"};

std::set<std::string> Union(std::set<std::string> all, const std::set<std::string>& more) {
  all.insert(more.begin(), more.end());
  return all;
}

json ExpectedMatrix() {
  const std::set<std::string> reader = Union(kOpen, kState);
  const std::set<std::string> worker = Union(reader, kWork);
  return {{"", kOpen},
          {"chief", Union(reader, kOrders)},
          {"ps/0",
           Union(reader,
                 {"/lockstep.ParameterServer/Push", "/lockstep.ParameterServer/AttachMemory",
                  "/lockstep.ParameterServer/PutState", "/lockstep.ParameterServer/ServerPing"})},
          {"reader", reader},
          {"worker", worker},
          {"worker/0", worker},
          {"worker/1", worker},
          {"operator", Union(reader, kStop)}};
}

// A worker speaks for itself: of what it says in another's name nothing is heard.
void CheckSpeakers(const json& codes, const std::string& service) {
  REQUIRE(codes.size() == 20);
  for (const auto& [call, code] : codes.items()) {
    if (!absl::StartsWith(call, "/lockstep." + service)) continue;
    INFO(call << ": " << code);
    CHECK((code == "PERMISSION_DENIED") == absl::EndsWith(call, "worker 0"));
  }
}

// Asks every process of a job that trains, and sees that it trains on. `path`: of role_matrix.py.
void CheckRoles(Cluster* cluster, const std::string& path, const json& matrix, size_t num_forged) {
  cluster->StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster->WaitForStep(5, absl::Minutes(1)));
  const std::pair<std::string, std::string> processes[] = {
      {cluster->spec().ps[0], "ParameterServer"},
      {cluster->spec().chief, "Chief"},
      {cluster->spec().workers[0], "Peer"}};
  for (const auto& [address, service] : processes) {
    INFO(service);
    const json seen = RunPythonForJson("role_matrix.py", {SourceRoot(), address, path});
    INFO(seen.dump(1));
    CHECK(seen["matrix"] == matrix);
    CheckSpeakers(seen["speakers"], service);
    REQUIRE(seen["forged"].size() == num_forged);
    for (const auto& [name, code] : seen["forged"].items()) {
      INFO(name);
      CHECK(code == "UNAUTHENTICATED");
    }
  }
  const auto status = FetchStatus(cluster->spec().chief, absl::Seconds(10), cluster->credentials());
  REQUIRE(status.ok());
  INFO(cluster->Logs());
  CHECK(cluster->WaitForStep(status->global_step() + 5, absl::Minutes(1)));
}

TEST_CASE("with a token each role calls its own methods, and a job trains on while others try") {
  Cluster cluster(1, 2);
  const std::string token = cluster.UseToken();
  CheckRoles(&cluster, token, ExpectedMatrix(), 10);
  CHECK(absl::IsUnauthenticated(FetchStatus(cluster.spec().chief, absl::Seconds(10)).status()));
}

TEST_CASE("with certificates each role calls its own methods, and a job trains on") {
  Cluster cluster(1, 2);
  const std::string tls = cluster.UseTls();
  json matrix = ExpectedMatrix();
  matrix.erase("worker");  // `lockstep certificates` makes none without an index
  CheckRoles(&cluster, tls, matrix, 1);
}

TEST_CASE("a stock client ends a job with an operator's credential, and not with a reader's") {
  Cluster cluster(1, 1);
  const std::string token = cluster.UseToken();
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  cluster.StartAll({.max_steps = kForeverSteps, .checkpoint = "folder: '" + checkpoints + "'"});
  REQUIRE(cluster.WaitForStep(5, absl::Minutes(1)));
  const json told = RunPythonForJson("stop_job.py", {SourceRoot(), cluster.spec().chief, token});
  const auto code = cluster.chief().Wait(absl::Seconds(20));
  INFO(told.dump(1) << cluster.Logs());
  CHECK(code == 130);
  CHECK(told["reader"] == "PERMISSION_DENIED");
  const json& stopped = told["operator"];
  CHECK(stopped["exit_code"] == 130);
  CHECK(stopped["reason"] == "an operator has stopped the job");
  CHECK(stopped["save_error"] == "");
  const int64_t step = stopped["global_step"];
  CHECK(step > 5);
  CHECK(stopped["checkpoint_step"] == step);
  CHECK(stopped["checkpoint"] == absl::StrCat(checkpoints, "/ckpt-", step));
  CHECK(std::filesystem::exists(absl::StrCat(checkpoints, "/ckpt-", step, "/manifest.json")));
}

}  // namespace
}  // namespace lockstep::test
