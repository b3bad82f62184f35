// Makes the optimizers and learning-rate schedules that a script names.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer/update_rule.h"

namespace lockstep::oracle {

// INVALID_ARGUMENT for a name that we do not have. Throws nlohmann::json::exception if a
// hyper-parameter is missing.
absl::StatusOr<std::unique_ptr<const UpdateRule>> RuleOf(const std::string& optimizer,
                                                         const nlohmann::json& hyper_parameters);

// A number is a constant rate. Errors as RuleOf.
absl::StatusOr<LearningRateSchedule> ScheduleOf(const nlohmann::json& learning_rate);

}  // namespace lockstep::oracle
