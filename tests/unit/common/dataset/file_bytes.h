// Bytes of data files for tests, written as the formats' documents say, not with our code.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::test {

inline std::string BigEndian32(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// An IDX file: `type` is the code in its magic number.
inline std::string Idx(int type, const std::vector<uint32_t>& extents, const std::string& data) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (uint32_t extent : extents) bytes += BigEndian32(extent);
  return bytes + data;
}

// An IDX file of bytes 0, 1, 2, ... (modulo `modulus`) that has as many as the extents say.
inline std::string CountingIdx(const std::vector<uint32_t>& extents, int modulus = 256) {
  size_t size = 1;
  for (uint32_t extent : extents) size *= extent;
  std::string data(size, '\0');
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(i % modulus);
  return Idx(0x08, extents, data);
}

// One gzip member.
inline std::string Gzip(const std::string& contents) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  std::string compressed(deflateBound(&stream, contents.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

}  // namespace lockstep::test
