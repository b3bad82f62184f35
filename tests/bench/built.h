// BuiltProgram finds the programs that were built together with the benchmark.
#pragma once

#include <string>

namespace lockstep::bench {

// "deploy/cli/up" -> its path.
std::string BuiltProgram(const std::string& name);

}  // namespace lockstep::bench
