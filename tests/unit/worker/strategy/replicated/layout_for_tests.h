// A model of a replicated job: "w" is trained, "mean" a statistic, "fixed" frozen, the loss last.
// Two elements each, but for the loss.
#pragma once

#include <string>

#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

inline Placement PlacementForTests(int64_t elements = 2) {
  Placement placement;
  placement.set_shards(1);
  const auto add = [&](const std::string& name, int64_t size) {
    VariableSpec* spec = placement.add_variables();
    spec->set_id(static_cast<uint32_t>(placement.variables_size() - 1));
    spec->set_name(name);
    spec->set_dtype(FLOAT32);
    spec->add_dims(size);
    spec->set_replicated(name != "loss");
    return spec;
  };
  add("w", elements)->set_trainable(true);
  add("mean", elements);
  add("fixed", elements)->set_frozen(true);
  add("loss", 1);
  return placement;
}

inline VariableLayout LayoutForTests(int64_t elements = 2) {
  return *VariableLayout::Create(PlacementForTests(elements));
}

}  // namespace lockstep::worker
