#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/replay_kinds.h"
#include "tests/oracle/rules.h"

namespace lockstep::oracle {

absl::Status ReplaySchedule(const nlohmann::json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LearningRateSchedule schedule, ScheduleOf(script.at("spec")));
  int entry = 0;
  for (const nlohmann::json& value : script.at("values")) {
    comparison->Enter(entry++);
    const int64_t step = value.at(0);
    comparison->Near(absl::StrCat("rate at step ", step), DType::kFloat32, {value.at(1)},
                     {LearningRateAt(schedule, GlobalStep(step))});
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
