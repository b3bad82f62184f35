// What a process does and what it waits for, in words for a terminal.
#pragma once

#include <string>

#include "proto/status.pb.h"

namespace lockstep::deploy {

// Text from the other side: no control character reaches the terminal.
std::string Shown(const std::string& text);

// "training", "starting, waiting for the ps: ...", "waiting for step 7 ...".
std::string StateText(const ProcessStatus& status);

}  // namespace lockstep::deploy
