#include "common/base/philox.h"

#include "common/base/philox_block.h"
#include "common/base/philox_key.h"

namespace lockstep {

uint64_t PurposeHash(absl::string_view purpose) {
  uint64_t hash =
      0xCBF29CE484222325u;  // FNV-1a, then mixed: the name only has to be spread over the key
  for (unsigned char c : purpose) hash = (hash ^ c) * 0x100000001B3u;
  return hash;
}

Philox::Philox(uint64_t seed, absl::string_view purpose)
    : key_(MixSeeds(seed, PurposeHash(purpose))) {}

Philox::Block Philox::At(uint64_t counter, uint64_t lane) const {
  const PhiloxNumbers x = PhiloxBlock(key_, counter, lane);
  return {x.at[0], x.at[1], x.at[2], x.at[3]};
}

}  // namespace lockstep
