#include "common/checksum/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace lockstep {

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L counts with an int, does not change what it reads, and leaves the inversions to us.
  constexpr size_t kLargestPiece = size_t{1} << 30;
  crc = ~crc;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kLargestPiece);
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(size), crc);
    bytes = bytes.subspan(size);
  }
  return ~crc;
}

}  // namespace lockstep
