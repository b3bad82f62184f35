#include "worker/tower/training_towers.h"

#include "common/base/philox.h"

namespace lockstep::worker {

uint64_t KeyOfTower(uint64_t random_key, size_t tower, size_t num_towers) {
  return num_towers == 1 ? random_key : MixSeeds(random_key, static_cast<uint64_t>(tower));
}

}  // namespace lockstep::worker
