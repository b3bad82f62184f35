// How the threads of OpenMP wait for work.
#pragma once

namespace lockstep::worker {

// Makes them sleep instead of spin, unless the user has set OMP_WAIT_POLICY: several workers on one
// host would burn each other's cores (measured: a convolution 3 times slower). OpenMP reads the
// variable when it is loaded, so the process starts itself again with the variable set; call it as
// the first thing in main. Returns where nothing was to do, or where starting again is impossible.
void UsePassiveWaiting(char** argv);

}  // namespace lockstep::worker
