#include "common/image/png.h"

#include <zlib.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace lockstep {
namespace {

constexpr absl::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr char kBitDepth = 8;
constexpr char kGrey = 0;
constexpr char kRgb = 2;
constexpr char kFilterNone = 0;

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// Length, type, data, and the CRC of type and data.
std::string Chunk(absl::string_view type, absl::string_view data) {
  const std::string body = absl::StrCat(type, data);
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return absl::StrCat(BigEndian(static_cast<uint32_t>(data.size())), body,
                      BigEndian(static_cast<uint32_t>(crc)));
}

std::string Header(const Image& image) {
  std::string header = absl::StrCat(BigEndian(static_cast<uint32_t>(image.width)),
                                    BigEndian(static_cast<uint32_t>(image.height)));
  header += kBitDepth;
  header += image.channels == 3 ? kRgb : kGrey;
  header.append(3, '\0');  // deflate, adaptive filters, not interlaced
  return header;
}

// Each line of pixels begins with its filter.
std::string Lines(const Image& image) {
  const size_t line = image.width * image.channels;
  std::string lines;
  lines.reserve(image.height * (line + 1));
  for (int64_t y = 0; y < image.height; ++y) {
    lines += kFilterNone;
    lines.append(reinterpret_cast<const char*>(image.pixels.data()) + y * line, line);
  }
  return lines;
}

std::string Deflated(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string deflated(size, '\0');
  const int result =
      compress(reinterpret_cast<Bytef*>(deflated.data()), &size,
               reinterpret_cast<const Bytef*>(data.data()), static_cast<uLong>(data.size()));
  LOCKSTEP_CHECK(result == Z_OK);
  deflated.resize(size);
  return deflated;
}

}  // namespace

std::string EncodePng(const Image& image) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  LOCKSTEP_CHECK(image.channels == 1 || image.channels == 3);
  LOCKSTEP_CHECK(image.width > 0 && image.width <= kMost);
  LOCKSTEP_CHECK(image.height > 0 && image.height <= kMost);
  LOCKSTEP_CHECK(static_cast<int64_t>(image.pixels.size()) ==
                 image.height * image.width * image.channels);
  return absl::StrCat(kSignature, Chunk("IHDR", Header(image)),
                      Chunk("IDAT", Deflated(Lines(image))), Chunk("IEND", ""));
}

}  // namespace lockstep
