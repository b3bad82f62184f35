#include "ps/shard/update_rule_of.h"

#include "common/optimizer/adam.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/sgd.h"

namespace lockstep::ps {
namespace {

// proto3 has no "unset" for these: 0 means the default.
float OrDefault(float value, float otherwise) { return value == 0 ? otherwise : value; }

}  // namespace

absl::StatusOr<std::unique_ptr<const UpdateRule>> UpdateRuleOf(const OptimizerDef& optimizer) {
  switch (optimizer.kind_case()) {
    case OptimizerDef::kSgd:
      return MakeSgd();
    case OptimizerDef::kMomentum:
      return MakeMomentum({optimizer.momentum().momentum(), optimizer.momentum().nesterov()});
    case OptimizerDef::kAdam: {
      const AdamOptions defaults;
      return MakeAdam({OrDefault(optimizer.adam().beta1(), defaults.beta1),
                       OrDefault(optimizer.adam().beta2(), defaults.beta2),
                       OrDefault(optimizer.adam().epsilon(), defaults.epsilon)});
    }
    case OptimizerDef::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("optimizer: expected one of sgd, momentum, adam, got none");
}

}  // namespace lockstep::ps
