#include "common/base/philox.h"

#include <catch2/catch.hpp>
#include <set>

namespace lockstep {
namespace {

TEST_CASE("Philox4x32-10 gives the known answers of its authors") {
  constexpr uint64_t kOnes = ~uint64_t{0};
  CHECK(Philox(uint64_t{0}).At(0, 0) ==
        Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox(kOnes).At(kOnes, kOnes) ==
        Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0 (digits of pi).
  CHECK(Philox(uint64_t{0x299f31d0a4093822}).At(0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Streams differ by seed, purpose, counter and lane") {
  std::set<Philox::Block> blocks;
  int count = 0;
  for (uint64_t seed : {0, 1, 2}) {
    for (const char* purpose : {"", "a", "b", "ab", "ba"}) {
      const Philox random(seed, purpose);
      for (uint64_t counter : {0, 1, 2}) {
        for (uint64_t lane : {0, 1, 2}) {
          blocks.insert(random.At(counter, lane));
          ++count;
        }
      }
    }
  }
  CHECK(blocks.size() == count);
  CHECK(Philox(7, "x").At(3, 4) == Philox(7, "x").At(3, 4));
}

TEST_CASE("A uniform float is in [0, 1) for every word") {
  CHECK(UniformFloat(0) == 0.0f);
  CHECK(UniformFloat(0xFFFFFFFF) < 1.0f);
  CHECK(UniformFloat(0x80000000) == 0.5f);
}

TEST_CASE("Mixed seeds depend on both words and on their order") {
  CHECK(MixSeeds(1, 2) != MixSeeds(2, 1));
  CHECK(MixSeeds(0, 0) != MixSeeds(0, 1));
  CHECK(MixSeeds(0, 0) != MixSeeds(1, 0));
  // splitmix64 seeded with 0: its first two outputs, as published with the algorithm.
  CHECK(MixSeeds(0, 0) == 0xE220A8397B1DCDAFu);
  CHECK(MixSeeds(0, 1) == 0x6E789E6AA1B965F4u);
}

}  // namespace
}  // namespace lockstep
