#include "common/dataset/idx.h"

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using test::BigEndian32;
using test::CountingIdx;
using test::Gzip;
using test::Idx;
using test::TemporaryFolder;

std::vector<double> Values(const Records& records) {
  return VisitElements(
      records, [](auto elements) { return std::vector<double>(elements.begin(), elements.end()); });
}

TEST_CASE("An IDX file of two 3x3 images is read, plain and gzipped") {
  TemporaryFolder folder;
  const std::string golden(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x03"
      "\x00\x01\x02\x03\x04\x05\x06\x07\x08\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff",
      34);
  for (const std::string& bytes : {golden, Gzip(golden)}) {
    const std::string path = folder.Write("images", bytes);
    const auto header = ReadIdxHeader(path);
    REQUIRE(header.ok());
    CHECK(header->type == ElementType::kUInt8);
    CHECK(header->count == 2);
    CHECK(header->shape == Shape({3, 3}));
    const auto records = ReadIdx(path);
    REQUIRE(records.ok());
    CHECK(records->count == 2);
    CHECK(records->shape == Shape({3, 3}));
    CHECK(Values(*records) == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 247, 248, 249, 250,
                                                  251, 252, 253, 254, 255});
  }
}

TEST_CASE("Every element type of IDX is read from big-endian bytes") {
  struct Case {
    int code;
    ElementType type;
    std::string data;
    std::vector<double> expected;
  };
  const Case cases[] = {
      {0x08, ElementType::kUInt8, std::string("\x00\xff", 2), {0, 255}},
      {0x09, ElementType::kInt8, std::string("\x7f\x80", 2), {127, -128}},
      {0x0b, ElementType::kInt16, std::string("\x01\x02\xff\xfe", 4), {258, -2}},
      {0x0c, ElementType::kInt32, std::string("\x80\0\0\0\0\1\0\0", 8), {-2147483648.0, 65536}},
      {0x0d, ElementType::kFloat32, std::string("\x3f\x80\0\0\xc0\x20\0\0", 8), {1, -2.5}},
      {0x0e,
       ElementType::kFloat64,
       std::string("\x3f\xf8\0\0\0\0\0\0\x40\x09\x21\xfb\x54\x44\x2d\x18", 16),
       {1.5, 3.141592653589793}},
  };
  TemporaryFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.code);
    const auto records = ReadIdx(folder.Write("data", Idx(c.code, {2}, c.data)));
    REQUIRE(records.ok());
    CHECK(records->type == c.type);
    CHECK(records->shape == Shape());
    CHECK(Values(*records) == c.expected);
  }
}

TEST_CASE("A file of several gzip members is their concatenation") {
  TemporaryFolder folder;
  const std::string bytes = CountingIdx({5, 2});
  const auto records =
      ReadIdx(folder.Write("data", Gzip(bytes.substr(0, 7)) + Gzip("") + Gzip(bytes.substr(7))));
  REQUIRE(records.ok());
  CHECK(records->count == 5);
  CHECK(Values(*records).back() == 9);
}

TEST_CASE("Gzipped data larger than all buffers are read whole") {
  TemporaryFolder folder;
  const auto records = ReadIdx(folder.Write("data", Gzip(CountingIdx({3000, 100}))));
  REQUIRE(records.ok());
  const auto values = Values(*records);
  REQUIRE(values.size() == 300000);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != i % 256) FAIL("element " << i << " is " << values[i]);
  }
}

TEST_CASE("Malformed IDX data are refused with file, offset, expected and got") {
  const std::string sound = CountingIdx({4, 3, 3});
  const std::string nan("\x7f\xc0\0\0", 4);
  const std::string huge("\x7f\xe0\0\0\0\0\0\0", 8);  // finite as float64 only
  std::string wrong_checksum = Gzip(sound);
  wrong_checksum[wrong_checksum.size() - 8] ^= 1;
  std::string wrong_length = Gzip(sound);
  wrong_length.back() ^= 1;
  std::string broken_inside = Gzip(sound);
  broken_inside[12] ^= 0x55;
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<std::string> message;
  };
  const Case cases[] = {
      {"empty", "", {"byte 0", "empty file"}},
      {"one byte", std::string(1, '\0'), {"byte 1", "end of the file"}},
      {"half a magic", std::string("\0\0\x08", 3), {"byte 3", "end of the file"}},
      {"magic alone", std::string("\0\0\x08\x03", 4), {"byte 4", "16 bytes", "3 dimensions"}},
      {"cut in the extents", sound.substr(0, 15), {"byte 15", "16 bytes"}},
      {"header alone", sound.substr(0, 16), {"byte 16", "52 bytes", "4 records of shape [3,3]"}},
      {"one byte short", sound.substr(0, 51), {"byte 51", "52 bytes", "end of the file"}},
      {"one byte more", sound + "x", {"byte 52", "expected the end", "more bytes"}},
      {"a whole file more", sound + sound, {"byte 52", "expected the end"}},
      {"little-endian magic", std::string("\x03\x08\0\0\4\0\0\0", 8), {"byte 0", "03 08 00 00"}},
      {"text", "label,x,y\n1,2,3\n", {"byte 0", "magic number", "6c 61 62 65"}},
      {"PNG", std::string("\x89PNG\r\n\x1a\n\0\0", 10), {"byte 0", "89 50 4e 47"}},
      {"unknown type 0a", Idx(0x0a, {1}, "x"), {"byte 0", "00 00 0a 01"}},
      {"unknown type 00", Idx(0x00, {1}, "x"), {"byte 0", "00 00 00 01"}},
      {"no dimensions", Idx(0x08, {}, "x"), {"byte 0", "00 00 08 00"}},
      {"ten dimensions",
       Idx(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "x"),
       {"byte 3", "at most 9", "got 10"}},
      {"no records", Idx(0x08, {0, 3}, ""), {"byte 4", "0 x 3"}},
      {"empty records", Idx(0x08, {3, 0}, ""), {"byte 4", "3 x 0"}},
      {"product beyond 64 bits",
       Idx(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, "x"),
       {"byte 4", "4294967295 x 4294967295 x 4294967295"}},
      {"product of exactly 2^63",
       Idx(0x0e, {0x40000000, 0x40000000}, "x"),
       {"byte 4", "1073741824 x 1073741824"}},
      {"product that wraps around to 4",
       Idx(0x08, {0x80000001, 4, 0x80000000}, "abcd"),
       {"byte 4", "2147483649"}},
      {"largest product that fits",
       Idx(0x08, {0x7fffffff, 0x7fffffff}, "x"),
       {"byte 13", "got the end of the file"}},
      {"claims 4 TiB", Idx(0x08, {1024, 0xffffffff}, "x"), {"byte 13", "got the end"}},
      {"float32 NaN", Idx(0x0d, {2}, BigEndian32(0) + nan), {"byte 12", "finite", "record 1"}},
      {"float32 infinity", Idx(0x0d, {1}, BigEndian32(0x7f800000)), {"byte 8", "inf"}},
      {"float64 beyond float32", Idx(0x0e, {1}, huge), {"byte 8", "record 0"}},
      {"gzip of nothing", Gzip(""), {"byte 0", "uncompressed", "empty file"}},
      {"gzip of a cut file", Gzip(sound.substr(0, 40)), {"byte 40 (of the uncompressed data)"}},
      {"gzip of a long file", Gzip(sound + "xy"), {"byte 52", "more bytes"}},
      {"gzip of what claims 4 TiB", Gzip(Idx(8, {1024, 0xffffffff}, "x")), {"byte 4", "gunzip"}},
      {"gzip's magic alone", Gzip(sound).substr(0, 2), {"byte 2", "middle of its gzip stream"}},
      {"gzip's header alone", Gzip(sound).substr(0, 10), {"byte 10", "gzip"}},
      {"gzip without trailer", Gzip(sound).substr(0, Gzip(sound).size() - 8), {"middle of its"}},
      {"gzip with a wrong checksum", wrong_checksum, {"incorrect data check"}},
      {"gzip with a wrong length", wrong_length, {"incorrect length check"}},
      {"gzip broken inside", broken_inside, {}},
      {"gzip with text behind it", Gzip(sound) + "text", {"bytes behind the end"}},
      {"gzip followed by half a member", Gzip(sound) + Gzip("x").substr(0, 9), {"middle of its"}},
  };
  TemporaryFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string path = folder.Write("data.idx", c.bytes);
    const auto status = ReadIdx(path).status();
    INFO(status.ToString());
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    const std::string message(status.message());
    CHECK_THAT(message, Catch::StartsWith(path + ": byte "));
    CHECK_THAT(message, Catch::Contains("Remedy: "));
    CHECK_THAT(message, !Catch::Contains("\n"));
    for (const std::string& part : c.message) CHECK_THAT(message, Catch::Contains(part));
  }
}

TEST_CASE("The header alone tells whether a plain file is cut or too long") {
  TemporaryFolder folder;
  const std::string sound = CountingIdx({4, 3, 3});
  const std::string path = folder.Write("cut", sound.substr(0, 51));
  CHECK(ReadIdxHeader(path).status().code() == absl::StatusCode::kDataLoss);
  CHECK(ReadIdxHeader(folder.Write("long", sound + "x")).status().code() ==
        absl::StatusCode::kDataLoss);
  CHECK(ReadIdxHeader(folder.Write("sound", sound)).ok());
}

TEST_CASE("No cut and no changed byte of a file is ever mistaken for sound data") {
  TemporaryFolder folder;
  const std::string plain = CountingIdx({3, 2, 2});
  const std::string compressed = Gzip(plain);
  const auto sound = Values(*ReadIdx(folder.Write("data", plain)));
  for (const std::string& bytes : {plain, compressed}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(size);
      CHECK(ReadIdx(folder.Write("data", bytes.substr(0, size))).status().code() ==
            absl::StatusCode::kDataLoss);
    }
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] ^= 0x81;
      const auto records = ReadIdx(folder.Write("data", changed));
      // In a plain file any element is legal; gzip's checksum sees each change, except of what its
      // header says beside the data (time, system).
      const bool undetectable = bytes == plain ? at >= 16 : at >= 4 && at < 10;
      CAPTURE(at);
      if (!undetectable) CHECK_FALSE(records.ok());
      if (records.ok() && bytes == compressed) CHECK(Values(*records) == sound);
    }
  }
}

TEST_CASE("Files that cannot be opened are named with a remedy") {
  TemporaryFolder folder;
  const auto missing = ReadIdx(folder.Path("missing")).status();
  CHECK(missing.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(missing.message()), Catch::StartsWith(folder.Path("missing") + ": "));
  CHECK_THAT(std::string(missing.message()), Catch::Contains("Remedy: "));
  const auto is_folder = ReadIdx(folder.path()).status();
  CHECK_FALSE(is_folder.ok());
  CHECK_THAT(std::string(is_folder.message()), Catch::Contains("directory"));
  const auto below_file = ReadIdx(folder.Write("file", "x") + "/data").status();
  CHECK_FALSE(below_file.ok());
}

}  // namespace
}  // namespace lockstep
