// VectorTarget is the set of vector instructions that the loops over elements use. It is chosen
// once, at run time: Highway detects the CPU. Results do not depend on it, to the last bit.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

enum class VectorTarget {
  kBaseline,  // every CPU of the architecture has it
  kAvx2,
  kAvx512,  // F, BW, CD, DQ and VL
};

// "baseline", "AVX2", "AVX-512".
absl::string_view Name(VectorTarget target);

// Returns the targets that this CPU has, from the narrowest to the widest.
std::vector<VectorTarget> SupportedVectorTargets();

// Returns the widest of them, unless it was limited. Thread-safe.
VectorTarget ChosenVectorTarget();
// From now on loops use nothing wider. For tests and measurements.
void LimitVectorTarget(VectorTarget widest);

}  // namespace lockstep
