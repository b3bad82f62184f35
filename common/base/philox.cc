#include "common/base/philox.h"

namespace lockstep {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

// splitmix64's finaliser (Steele, Lea, Flood, OOPSLA'14).
uint64_t MixSeeds(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

Philox::Philox(uint64_t seed, absl::string_view purpose) {
  uint64_t hash =
      0xCBF29CE484222325u;  // FNV-1a, then mixed: the name only has to be spread over the key
  for (unsigned char c : purpose) hash = (hash ^ c) * 0x100000001B3u;
  key_ = MixSeeds(seed, hash);
}

Philox::Block Philox::At(uint64_t counter, uint64_t lane) const {
  Block x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
             static_cast<uint32_t>(lane), static_cast<uint32_t>(lane >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key_);
  uint32_t k1 = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * x[0];
    const uint64_t p1 = static_cast<uint64_t>(kMultiplier1) * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return x;
}

}  // namespace lockstep
