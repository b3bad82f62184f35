// What a Python client that knows nothing but gRPC's standard services sees of a running job.
#include <catch2/catch.hpp>
#include <string>

#include "absl/time/time.h"
#include "tests/integration/cluster.h"
#include "tests/interop/python.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

constexpr int kForeverSteps = 1'000'000;

// In protobuf's JSON 64-bit integers are strings, and what is zero is left out.
int64_t Number(const json& message, const std::string& field) {
  return std::stoll(message.value(field, "0"));
}

json See(const std::string& address) {
  json seen = RunPythonForJson("stock_client.py", {SourceRoot(), address});
  INFO(seen.dump(1));
  CHECK(seen["health"] == json{{"", "SERVING"}, {"ready", "SERVING"}});
  CHECK(seen["services"]["lockstep.StatusService"] == json{"GetStatus"});
  CHECK(Number(seen["status"], "global_step") > 5);
  CHECK(Number(seen["status"], "pid") > 0);
  CHECK(seen["status"]["version"].is_string());
  return seen;
}

TEST_CASE("a stock client finds health, services and status of every process of a running job") {
  Cluster cluster(1, 2);
  cluster.StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster.WaitForStep(5, absl::Minutes(1)));

  const json chief = See(cluster.spec().chief);
  CHECK(chief["services"]["lockstep.Chief"] == json{"Heartbeat", "RegisterTask", "ReportError"});
  CHECK(chief["services"]["lockstep.JobControl"] == json{"Stop"});
  CHECK(chief["status"]["role"] == "chief");
  CHECK(chief["status"]["state"] == "training");
  const json& job = chief["status"]["job"];
  CHECK(Number(job, "max_steps") == kForeverSteps);
  CHECK(job["replicas_to_aggregate"] == 2);
  CHECK(job["total_num_replicas"] == 2);
  CHECK(Number(job, "accepted") > 0);
  CHECK(job["loss"] > 0);
  CHECK(job["steps_per_second"] > 0);
  REQUIRE(job["members"].size() == 2);
  for (int i = 0; i < 2; ++i) {
    const json& member = job["members"][i];
    CHECK(member.value("worker", 0) == i);
    CHECK(member["address"] == cluster.spec().workers[i]);
    CHECK(member["state"] == "live");
    CHECK(member["seconds_since_heartbeat"] < 10);
    CHECK(Number(member, "pid") == cluster.worker(i).pid());
  }
  REQUIRE(job["shards"].size() == 1);
  CHECK(job["shards"][0]["address"] == cluster.spec().ps[0]);
  CHECK(job["shards"][0]["variables"] == 4);  // a ps counts the training loss, too

  const json ps = See(cluster.spec().ps[0]);
  CHECK(ps["services"]["lockstep.ParameterServer"] ==
        json{"AttachMemory", "CommitStep", "CreateVariables", "DequeueToken", "Finish", "GetView",
             "Grant", "Ping", "Pull", "Push", "PutState", "ReleaseSnapshot", "RenewLease", "Save",
             "ServerPing", "SetView", "StoreVersion", "WatchCommand"});
  CHECK(ps["status"]["role"] == "ps");
  CHECK(ps["status"]["shard"]["variables"] == 5);
  CHECK(Number(ps["status"]["shard"], "accepted") > 0);
  CHECK(Number(ps["status"]["shard"], "bytes") == Number(job["shards"][0], "bytes"));

  const json worker = See(cluster.spec().workers[1]);
  CHECK(worker["status"]["role"] == "worker");
  CHECK(worker["status"]["task"] == 1);
  CHECK(worker["status"]["worker"]["towers"] == 1);
  CHECK(Number(worker["status"]["worker"], "accepted") > 0);
}

TEST_CASE("a stock client that watches the health of a process hears of its end") {
  Cluster cluster(1, 1);
  cluster.StartAll({.max_steps = kForeverSteps});
  REQUIRE(cluster.WaitForStep(5, absl::Minutes(1)));
  const json seen = RunPythonForJson("watch_health.py", {SourceRoot(), cluster.spec().chief});
  INFO(seen.dump(1) << cluster.Logs());
  for (const char* name : {"", "ready"}) {
    CHECK(seen[name]["statuses"] == json{"SERVING", "NOT_SERVING"});
    CHECK(seen[name]["end"] == "UNAVAILABLE");
  }
  CHECK(seen["nobody"]["statuses"] == json::array({"SERVICE_UNKNOWN"}));
  CHECK(seen["nobody"]["end"] == "UNAVAILABLE");
  CHECK(cluster.chief().Wait(absl::Seconds(20)) == 130);
}

}  // namespace
}  // namespace lockstep::test
