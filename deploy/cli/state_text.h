// What a process does, waits for and has counted, in words for a terminal. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "proto/status.pb.h"

namespace lockstep::deploy {

// Text from the other side: no control character reaches the terminal.
std::string Shown(const std::string& text);

// "training", "starting, waiting for the ps: ...", "waiting for step 7 ...".
std::string StateText(const ProcessStatus& status);

// "97.50 %" of a share from 0 to 1.
std::string PercentText(double share);

// Gradients of workers, from counts of single variables: "1,200". 0 variables: the counts as they
// are. A gradient that is stale in some variables only counts in part, so this rounds.
std::string GradientCount(uint64_t count, uint32_t variables_per_gradient);
// "1,200 accepted, 508 stale".
std::string GradientsText(uint64_t accepted, uint64_t stale, uint32_t variables_per_gradient);

}  // namespace lockstep::deploy
