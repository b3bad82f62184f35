// Which vector instructions the loops over elements use on this machine: chosen once, at run time,
// by what Highway finds the CPU to have. Results do not depend on it, to the last bit.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

enum class VectorTarget {
  kBaseline,  // what every CPU of the architecture has
  kAvx2,
  kAvx512,  // F, BW, CD, DQ and VL
};

// "baseline", "AVX2", "AVX-512".
absl::string_view Name(VectorTarget target);

// What this CPU has, from the narrowest to the widest.
std::vector<VectorTarget> SupportedVectorTargets();

// The widest of them, unless it was limited. Thread-safe.
VectorTarget ChosenVectorTarget();
// From now on loops use nothing wider. For tests and measurements.
void LimitVectorTarget(VectorTarget widest);

}  // namespace lockstep
