// The network that benchmarks run on. TCP's congestion control makes a factor of two on loopback,
// and what the system has chosen for its real network need not be good here.
#pragma once

#include <string>

namespace lockstep::bench {

// Moves this process, and what it starts from now on, into a network of its own with a plain
// congestion control: for all sides alike. Where that is not permitted everything stays as it is.
// Returns what holds now, such as "own network, TCP congestion control reno". Call before any
// thread is started.
std::string PrepareLoopback();

}  // namespace lockstep::bench
