// Files that are not what they should be: each is refused with DATA_LOSS that names the file and
// says what is wrong.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/safetensors_file.h"
#include "common/checkpoint/strict_json.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

std::string File(uint64_t length, const std::string& json, size_t data_bytes) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + std::string(data_bytes, 'd');
}

std::string File(const std::string& json, size_t data_bytes) {
  return File(json.size(), json, data_bytes);
}

struct Case {
  std::string file;
  std::string problem;  // what the message must say
};

void CheckAll(const std::vector<Case>& cases) {
  const TemporaryFolder folder;
  for (const Case& malformed : cases) {
    CAPTURE(malformed.problem, malformed.file.substr(0, 200));
    const std::string path = folder.Write("f.safetensors", malformed.file);
    const absl::Status status = SafetensorsFile::Open(path).status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StartsWith(status.message(), path + ": "));
    CHECK_THAT(std::string(status.message()), Catch::Contains(malformed.problem));
    CHECK(status.message().size() < 500);
  }
}

TEST_CASE("a well-formed file of the same making is accepted") {
  const TemporaryFolder folder;
  const auto opens = [&](const std::string& file) {
    return SafetensorsFile::Open(folder.Write("f", file)).status();
  };
  CHECK(opens(File("{}", 0)).ok());
  CHECK(opens(File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8)).ok());
  CHECK(opens(File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )", 8)).ok());
  CHECK(
      opens(
          File(R"({"__metadata__":{"by":"me"},"a":{"shape":[],"data_offsets":[0,1],"dtype":"U8"}})",
               1))
          .ok());
  // In the file's order the names need not be sorted, nor the bytes follow the header's order.
  CHECK(opens(File(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                   R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                   2))
            .ok());
}

TEST_CASE("a length that does not fit the file is refused") {
  CheckAll({
      {"", "0 bytes long"},
      {"1234567", "7 bytes long"},
      {File(0, "", 0), "does not begin with '{'"},
      {File(3, "{}", 0), "header of 3 bytes, the file has 2"},
      {File(100'000'000, "{}", 0), "header of 100000000 bytes"},
      {File(100'000'001, "{}", 0), "the format allows 100000000"},
      {File(UINT64_MAX, "{}", 0), "header of 18446744073709551615 bytes"},
      {File(UINT64_MAX - 7, "{}", 0), "the format allows"},
      {File(1, "{}", 0), "not JSON at byte"},
  });
}

TEST_CASE("a header that is not one JSON object without doubt is refused") {
  const std::string tensor = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  CheckAll({
      {File("[]", 0), "does not begin with '{'"},
      {File("null", 0), "does not begin with '{'"},
      {File(" {}", 0), "does not begin with '{'"},
      {File("\xef\xbb\xbf{}", 0), "does not begin with '{'"},
      {File("{", 0), "not JSON at byte"},
      {File("{} x", 0), "not JSON at byte"},
      {File("{}{}", 0), "not JSON at byte"},
      {File(R"({"a":)" + tensor + ",}", 1), "not JSON at byte"},
      {File("{'a':" + tensor + "}", 1), "not JSON at byte"},
      {File("{\"a\xff\":" + tensor + "}", 1), "not JSON at byte"},
      {File(R"({"a\ud800":)" + tensor + "}", 1), "not JSON at byte"},
      {File("{\"a\n\":" + tensor + "}", 1), "not JSON at byte"},
      {File(R"({"a":)" + tensor + "/* c */}", 1), "not JSON at byte"},
      {File(std::string("{}\0", 3), 0), "not JSON at byte 3"},
      {File(std::string("{}\0{\"a\":1}", 10), 0), "not JSON at byte 3"},
      {File(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", 1), "'a' is given twice"},
      {File(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
       "'dtype' is given twice"},
      {File(R"({"a":)" + tensor + R"(,"\u0061":)" + tensor + "}", 1), "'a' is given twice"},
      {File("{\"a\":" + std::string(1'000'000, '['), 0), "nested deeper than 3"},
      {File(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1), "nested deeper"},
      {File(R"({"__metadata__":[]})", 0), "__metadata__ is not an object"},
      {File(R"({"__metadata__":{"a":1}})", 0), "__metadata__ 'a' is not a string"},
  });
}

TEST_CASE("a tensor that is not fully and soundly described is refused") {
  const auto tensor = [](const std::string& fields, size_t data_bytes) {
    return File(R"({"a":{)" + fields + "}}", data_bytes);
  };
  const std::string dtype = R"("dtype":"F32")", shape = R"("shape":[2])",
                    offsets = R"("data_offsets":[0,8])";
  const auto with_dtype = [&](const std::string& value) {
    return tensor(absl::StrCat("\"dtype\":", value, ",", shape, ",", offsets), 8);
  };
  const auto with_shape = [&](const std::string& value) {
    return tensor(absl::StrCat(dtype, ",\"shape\":", value, ",", offsets), 8);
  };
  const auto with_offsets = [&](const std::string& value) {
    return tensor(absl::StrCat(dtype, ",", shape, ",\"data_offsets\":", value), 8);
  };
  CheckAll({
      {File(R"({"a":7})", 0), "tensor 'a': not an object"},
      {File(R"({"a":[]})", 0), "tensor 'a': not an object"},
      {File(R"({"":{}})", 0), "a name of 0 bytes"},
      {File("{\"" + std::string(4097, 'n') + "\":{}}", 0), "a name of 4097 bytes"},
      {tensor("", 8), "expected the fields dtype, shape and data_offsets"},
      {tensor(dtype + "," + shape, 8), "expected the fields"},
      {tensor(dtype + "," + offsets, 8), "expected the fields"},
      {tensor(shape + "," + offsets, 8), "expected the fields"},
      {tensor(absl::StrCat(dtype, ",", shape, ",", offsets, ",\"x\":1"), 8), "no others"},
      {with_dtype("32"), "dtype is not a string"},
      {with_dtype("\"F33\""), "unknown dtype 'F33'"},
      {with_dtype("\"f32\""), "unknown dtype 'f32'"},
      {with_dtype("\"\""), "unknown dtype ''"},
      {with_dtype("\"F64\""), "does not fit the 8 bytes"},
      {with_shape("2"), "shape is not a list"},
      {with_shape("[-2]"), "not a whole number"},
      {with_shape("[2.0]"), "not a whole number"},
      {with_shape("[\"2\"]"), "not a whole number"},
      {with_shape("[null]"), "not a whole number"},
      {with_shape("[9223372036854775808]"), "not a whole number"},
      {with_shape("[18446744073709551618]"), "not a whole number"},
      {with_shape("[1e400]"), "not JSON at byte"},
      {with_shape("[1,1,1,1,1,1,1,1,2]"), "rank 9"},
      {with_shape("[3]"), "does not fit the 8 bytes"},
      {with_shape("[]"), "does not fit the 8 bytes"},
      {with_shape("[0]"), "does not fit the 8 bytes"},
      {with_shape("[4611686018427387904,4]"), "more elements than can be counted"},
      {with_shape("[4294967296,4294967298]"), "more elements than can be counted"},
      {with_shape("[4611686018427387906]"), "more elements than can be counted"},
      {with_offsets("8"), "not a pair of whole numbers"},
      {with_offsets("[0]"), "not a pair of whole numbers"},
      {with_offsets("[0,8,8]"), "not a pair of whole numbers"},
      {with_offsets("[0,-8]"), "not a pair of whole numbers"},
      {with_offsets("[0.0,8.0]"), "not a pair of whole numbers"},
      {with_offsets("[8,0]"), "end before they begin"},
      {with_offsets("[18446744073709551608,18446744073709551616]"), "not a pair"},
      {with_offsets("[18446744073709551607,18446744073709551615]"), "begins at byte"},
  });
}

TEST_CASE("bytes that belong to no tensor or to two are refused") {
  const auto two = [](const std::string& first, const std::string& second, size_t data_bytes) {
    return File(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                    R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                data_bytes);
  };
  CheckAll({
      {two("[0,4]", "[5,9]", 9), "tensor 'b': begins at byte 5, expected 4"},
      {two("[0,4]", "[3,7]", 7), "tensor 'b': begins at byte 3, expected 4"},
      {two("[0,4]", "[0,4]", 4), "begins at byte 0, expected 4"},
      {two("[4,8]", "[8,12]", 12), "tensor 'a': begins at byte 4, expected 0"},
      {two("[0,4]", "[4,8]", 9), "end at byte 8 after the header, the file at 9"},
      {two("[0,4]", "[4,8]", 7), "end at byte 8 after the header, the file at 7"},
      {two("[0,4]", "[4,8]", 0), "the file at 0"},
      {File("{}", 1), "end at byte 0 after the header, the file at 1"},
      {File(R"({"e":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},)"
            R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
            4),
       "tensor 'e': begins at byte 2"},
  });
}

TEST_CASE("no header of random damage is taken for more than the bytes that there are") {
  const std::string json =
      R"({"__metadata__":{"k":"v"},"a/kernel":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})";
  REQUIRE(DecodeSafetensorsHeader(json, 26).ok());
  std::mt19937 random(20260101);
  const std::string spice = "{}[]\",:0123456789-+.eE\\u \xff";
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = json;
    for (uint32_t hits = 1 + random() % 3; hits > 0; --hits) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged[at] = spice[random() % spice.size()];
          break;
        case 2:
          damaged.erase(at, 1 + random() % 8);
          break;
        default:
          damaged.insert(at, 1, spice[random() % spice.size()]);
      }
      if (damaged.empty()) damaged = "x";
    }
    const auto entries = DecodeSafetensorsHeader(damaged, 26);
    entries.ok() ? ++accepted : ++refused;
    if (!entries.ok()) {
      CHECK(entries.status().code() == absl::StatusCode::kDataLoss);
      continue;
    }
    uint64_t end = 0;
    for (const SafetensorsEntry& entry : *entries) {
      CHECK(entry.begin == end);
      CHECK(entry.end - entry.begin == entry.shape.num_elements() * SizeOf(entry.dtype));
      end = entry.end;
    }
    CHECK(end == 26);
  }
  // Damage inside a name goes unseen here (the manifest knows the names); most does not.
  CHECK(refused > 10000);
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace lockstep
