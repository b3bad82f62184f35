// Sets how the threads of OpenMP wait for work.
#pragma once

namespace lockstep::worker {

// Makes the threads sleep instead of spin, unless the user has set OMP_WAIT_POLICY. Spinning
// workers on one host take each other's cores (measured: a convolution 3 times slower). OpenMP
// reads the variable when it is loaded, so the process restarts itself with the variable set. Call
// it first in main. Returns only if no restart is needed, or if it is impossible.
void UsePassiveWaiting(char** argv);

}  // namespace lockstep::worker
