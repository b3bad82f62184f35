#include "tests/oracle/replay.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/replay_kinds.h"

namespace lockstep::oracle {
namespace {

absl::Status ReplayKind(const Script& script, Comparison* comparison) {
  const std::string& kind = script.kind;
  if (kind == "accumulator") return ReplayAccumulator(script.content, comparison);
  if (kind == "training") return ReplayTraining(script.content, comparison);
  if (kind == "cluster") return ReplayCluster(script.content, comparison);
  if (kind == "cross_tower") return ReplayCrossTower(script.content, comparison);
  if (kind == "local_sync") return ReplayLocalSync(script.content, comparison);
  if (kind == "gan") return ReplayGan(script.content, comparison);
  if (kind == "async_towers") return ReplayAsyncTowers(script.content, comparison);
  if (kind == "schedule") return ReplaySchedule(script.content, comparison);
  if (kind == "ftrl") return ReplayFtrl(script.content, comparison);
  if (kind == "adamw") return ReplayAdamW(script.content, comparison);
  if (kind == "clipping") return ReplayClipping(script.content, comparison);
  return absl::InvalidArgumentError(absl::StrCat("no kind of script is called \"", kind, "\""));
}

}  // namespace

absl::StatusOr<Comparison> Replay(const Script& script) {
  Comparison comparison;
  try {
    LOCKSTEP_RETURN_IF_ERROR(ReplayKind(script, &comparison));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a script: ", error.what()));
  }
  return comparison;
}

}  // namespace lockstep::oracle
