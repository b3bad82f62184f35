#include "common/optimizer/update_rule.h"

namespace lockstep {

std::vector<float> InitialScalars(const UpdateRule& rule) {
  std::vector<float> values;
  for (const ScalarSpec& scalar : rule.scalars()) values.push_back(scalar.initial_value);
  return values;
}

}  // namespace lockstep
