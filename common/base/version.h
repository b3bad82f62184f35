// The version of this build, the same for every binary. Tasks of one job compare it when they
// register.
#pragma once

namespace lockstep {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace lockstep
