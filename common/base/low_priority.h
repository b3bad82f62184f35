// Threads that nobody waits for in a step.
#pragma once

namespace lockstep {

// Makes the calling thread leave the CPU to the others of the machine: niceness 10, a tenth of the
// share of a thread with niceness 0 while they compete, all of a CPU that is free. A niceness that
// is higher already stays. What such a thread holds under a lock should be short: it may stand
// still there for some slices of the scheduler.
void UseLowPriority();

}  // namespace lockstep
