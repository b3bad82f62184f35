#include "common/checkpoint/origin.h"

#include <nlohmann/json.hpp>

#include "common/checkpoint/json_fields.h"

namespace lockstep {

nlohmann::json OriginToJson(const CheckpointOrigin& origin) {
  return {{"epoch", origin.epoch}, {"step", origin.step}};
}

absl::Status OriginFromJson(const nlohmann::json& json, const std::string& where,
                            CheckpointOrigin* origin) {
  JsonFields fields(json, where);
  fields.Read("epoch", origin->epoch);
  fields.Read("step", origin->step);
  return fields.Finish();
}

}  // namespace lockstep
