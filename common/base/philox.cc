#include "common/base/philox.h"

#include "common/base/philox_block.h"
#include "common/base/philox_key.h"

namespace lockstep {

// splitmix64's finaliser (Steele, Lea, Flood, OOPSLA'14).
uint64_t MixSeeds(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t PhiloxKey(uint64_t seed, absl::string_view purpose) {
  uint64_t hash =
      0xCBF29CE484222325u;  // FNV-1a, then mixed: the name only has to be spread over the key
  for (unsigned char c : purpose) hash = (hash ^ c) * 0x100000001B3u;
  return MixSeeds(seed, hash);
}

Philox::Philox(uint64_t seed, absl::string_view purpose) : key_(PhiloxKey(seed, purpose)) {}

Philox::Block Philox::At(uint64_t counter, uint64_t lane) const {
  const PhiloxNumbers x = PhiloxBlock(key_, counter, lane);
  return {x.at[0], x.at[1], x.at[2], x.at[3]};
}

}  // namespace lockstep
