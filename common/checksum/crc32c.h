// CRC32C (Castagnoli), the checksum of tensors in a checkpoint and of messages with tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// The checksum of what `crc` is the checksum of, followed by `bytes`. 0 is that of nothing.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> bytes);

// Bytes of a file to read or write at a time between checksums: they stay in the cache.
inline constexpr size_t kChecksumPiece = size_t{1} << 20;

inline uint32_t Crc32c(std::span<const std::byte> bytes) { return ExtendCrc32c(0, bytes); }

}  // namespace lockstep
