// Against the bytes that the standard asks for; tests/interop reads a file with Python alone.
#include "common/image/png.h"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

std::string Inflated(const std::string& deflated, size_t size) {
  std::string data(size, '\0');
  uLongf got = size;
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(data.data()), &got,
                     reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()) == Z_OK);
  REQUIRE(got == size);
  return data;
}

TEST_CASE("a file is the signature, header, lines and end of the standard") {
  const int channels = GENERATE(1, 3);
  CAPTURE(channels);
  Image image{.height = 2, .width = 5, .channels = channels};
  for (int64_t i = 0; i < 10 * channels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(i * 25));
  }
  const std::string file = EncodePng(image);
  const std::string start("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\5\0\0\0\2\x08", 25);
  const std::string rest(channels == 3 ? "\2\0\0\0" : "\0\0\0\0", 4);
  CHECK(file.substr(0, 29) == start + rest);
  const std::string end("\0\0\0\0IEND\xae\x42\x60\x82", 12);
  CHECK(file.substr(file.size() - 12) == end);

  // Length and type, 33 bytes into the file; the CRC ahead of the end.
  CHECK(file.substr(37, 4) == "IDAT");
  const std::string lines =
      Inflated(file.substr(41, file.size() - 41 - 12 - 4), 2 * (1 + 5 * channels));
  for (size_t y = 0; y < 2; ++y) {
    const std::string line = lines.substr(y * (1 + 5 * channels), 1 + 5 * channels);
    CHECK(line[0] == 0);  // no filter
    for (int x = 0; x < 5 * channels; ++x) {
      CHECK(static_cast<uint8_t>(line[1 + x]) == image.pixels[y * 5 * channels + x]);
    }
  }
}

}  // namespace
}  // namespace lockstep
