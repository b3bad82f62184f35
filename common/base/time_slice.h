// Threads that others wait for, and that mostly wait themselves: for messages, or for a share of a
// loop. Beside threads that compute they should run as soon as they wake up.
#pragma once

namespace lockstep {

// Asks the scheduler to run the calling thread in slices of 0.5 ms, which puts it before threads
// with the usual, longer ones when it wakes up, and behind them when it does not stop: its share of
// the CPU stays the same. Without this a thread may wait for the end of a neighbour's slice, some
// milliseconds. For Linux 6.12 and later; earlier ones take no notice. Its policy and niceness stay
// as they are.
void UseShortTimeSlices();

}  // namespace lockstep
