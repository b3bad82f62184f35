// The digits that ship with the project, for jobs of the benchmark.
#pragma once

#include <string>

namespace lockstep::bench {

// A job's `data { ... }`: the training images, [8, 8, 1] in [0, 1]. From the root of the sources.
std::string DigitsData();

}  // namespace lockstep::bench
