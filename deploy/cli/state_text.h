// Formats the state and the counts of a process for a terminal. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "proto/status.pb.h"

namespace lockstep::deploy {

// Returns a received text without control characters, so that none reaches the terminal.
std::string Shown(const std::string& text);

// "training", "starting, waiting for the ps: ...", "waiting for step 7 ...".
std::string StateText(const ProcessStatus& status);

// "97.50 %" of a share from 0 to 1.
std::string PercentText(double share);

// Converts counts of single variables to gradients of workers: "1,200". 0 variables: the count
// itself. Rounds, because a gradient that is stale only in some variables counts in part.
std::string GradientCount(uint64_t count, uint32_t variables_per_gradient);
// "1,200 accepted, 508 stale".
std::string GradientsText(uint64_t accepted, uint64_t stale, uint32_t variables_per_gradient);

}  // namespace lockstep::deploy
