#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/cluster_job.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

absl::Status CompareVariables(const json& expected, ClusterJob* job, Comparison* comparison) {
  for (const auto& [name, values] : expected.items()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<double> got, job->Read(name));
    comparison->Near(name, DType::kFloat32, Flatten(values), got);
  }
  return absl::OkStatus();
}

absl::Status ReplayOn(uint32_t num_shards, const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterJob> job,
                            ClusterJob::Start(script, num_shards));
  int number = 0;
  for (const json& entry : script.at("log")) {
    comparison->Enter(number++);
    if (entry.at("op") != "run") return absl::InvalidArgumentError("clusters know only \"run\"");
    LOCKSTEP_RETURN_IF_ERROR(job->Run(entry.at("worker"), entry.at("gradients")));
    comparison->Equal("finished", entry.at("finished"), job->TakeFinished());
    comparison->Equal("waiting", entry.at("waiting"), job->Waiting());
    comparison->Equal("local_step", entry.at("local_step"), job->LocalSteps());
    comparison->Equal("global_step", entry.at("global_step"), job->GlobalStepNow());
    LOCKSTEP_RETURN_IF_ERROR(CompareVariables(entry.at("variables"), job.get(), comparison));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayCluster(const json& script, Comparison* comparison) {
  for (const uint32_t num_shards : {1, 2}) {
    LOCKSTEP_RETURN_IF_ERROR(ReplayOn(num_shards, script, comparison));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
