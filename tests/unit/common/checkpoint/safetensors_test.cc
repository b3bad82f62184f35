#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/philox.h"
#include "common/checkpoint/safetensors_file.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/checksum/crc32c.h"
#include "common/fs/folder.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

// One tensor, w: float32 [2] = 1, -2, as Python's safetensors 0.4 writes it.
constexpr char kGolden[] =
    "38000000000000007b2277223a7b226474797065223a22463332222c227368617065223a5b325d2c22646174615f6f"
    "666673657473223a5b302c385d7d7d20200000803f000000c0";

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Tensor FloatTensor(Shape shape, float first) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (float& value : tensor.as<float>()) value = first++;
  return tensor;
}

TEST_CASE("CRC32C gives the published values") {
  CHECK(Crc32c(Bytes("123456789")) == 0xe3069283);
  CHECK(Crc32c(Bytes(std::string(32, '\0'))) == 0x8a9136aa);
  CHECK(Crc32c(Bytes(std::string(32, '\xff'))) == 0x62a8ab43);
  CHECK(Crc32c({}) == 0);
}

TEST_CASE("CRC32C of pieces is that of the whole wherever it is cut") {
  const std::string text = "a checksum is taken while the bytes pass by, piece after piece";
  for (size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(ExtendCrc32c(Crc32c(Bytes(text.substr(0, cut))), Bytes(text.substr(cut))) ==
          Crc32c(Bytes(text)));
}

TEST_CASE("a file is written byte for byte as the format's own library writes it") {
  const TemporaryFolder folder;
  Tensor w(DType::kFloat32, {2});
  w.as<float>()[0] = 1;
  w.as<float>()[1] = -2;
  const auto record = WriteSafetensors(folder.Path("a.safetensors"), {{"w", w.view()}});
  REQUIRE(record.ok());
  CHECK(absl::BytesToHexString(folder.Read("a.safetensors")) == kGolden);
  CHECK(record->file == "a.safetensors");
  CHECK(record->bytes == 72);
  REQUIRE(record->tensors.size() == 1);
  CHECK(record->tensors[0].name == "w");
  CHECK(record->tensors[0].dtype == DType::kFloat32);
  CHECK(record->tensors[0].shape == Shape({2}));
  CHECK(record->tensors[0].crc32c == Crc32c(w.view().bytes()));
}

TEST_CASE("the golden file is read") {
  const TemporaryFolder folder;
  const auto file = SafetensorsFile::Open(folder.Write("a", absl::HexStringToBytes(kGolden)));
  REQUIRE(file.ok());
  REQUIRE(file->entries().size() == 1);
  CHECK(file->entries()[0].name == "w");
  CHECK(file->bytes() == 72);
  Tensor w(DType::kFloat32, {2});
  const auto crc = file->Read(file->entries()[0], w.view().bytes());
  REQUIRE(crc.ok());
  CHECK(w.as<float>()[0] == 1);
  CHECK(w.as<float>()[1] == -2);
  CHECK(*crc == Crc32c(w.view().bytes()));
  CHECK(*file->Checksum(file->entries()[0]) == *crc);
}

TEST_CASE("tensors are ordered by the width of their type and then by name") {
  const TemporaryFolder folder;
  const Tensor i64 = Tensor::Zeros(DType::kInt64, {1}), f64 = Tensor::Zeros(DType::kFloat64, {1}),
               f32 = Tensor::Zeros(DType::kFloat32, {1}), i32 = Tensor::Zeros(DType::kInt32, {1}),
               bf16 = Tensor::Zeros(DType::kBFloat16, {1}),
               f16 = Tensor::Zeros(DType::kFloat16, {1}), u8 = Tensor::Zeros(DType::kUInt8, {3});
  const auto record = WriteSafetensors(folder.Path("a"), {{"a", u8.view()},
                                                          {"b", f16.view()},
                                                          {"c", bf16.view()},
                                                          {"d", i32.view()},
                                                          {"f", f32.view()},
                                                          {"e", f32.view()},
                                                          {"E", f32.view()},
                                                          {"g", f64.view()},
                                                          {"h", i64.view()}});
  REQUIRE(record.ok());
  std::string order;
  for (const TensorRecord& tensor : record->tensors) order += tensor.name;
  CHECK(order == "hgEefdcba");
  const auto file = SafetensorsFile::Open(folder.Path("a"));
  REQUIRE(file.ok());
  std::string read_order;
  for (const SafetensorsEntry& entry : file->entries()) read_order += entry.name;
  CHECK(read_order == order);
}

TEST_CASE("scalars, empty tensors and files without a tensor are legal") {
  const TemporaryFolder folder;
  const Tensor scalar = FloatTensor({}, 3), empty = FloatTensor({0, 4}, 0);
  REQUIRE(WriteSafetensors(folder.Path("a"),
                           {{"s", scalar.view()}, {"e", empty.view()}, {"t", scalar.view()}})
              .ok());
  const auto file = SafetensorsFile::Open(folder.Path("a"));
  REQUIRE(file.ok());
  REQUIRE(file->entries().size() == 3);
  CHECK(file->entries()[0].shape == Shape({0, 4}));
  CHECK(*file->Checksum(file->entries()[0]) == 0);
  CHECK(file->entries()[1].shape == Shape({}));
  float value = 0;
  REQUIRE(file->Read(file->entries()[1], std::as_writable_bytes(std::span<float>(&value, 1))).ok());
  CHECK(value == 3);

  REQUIRE(WriteSafetensors(folder.Path("none"), {}).ok());
  CHECK(SafetensorsFile::Open(folder.Path("none"))->entries().empty());
}

TEST_CASE("a tensor larger than one piece of the stream comes back the same") {
  const TemporaryFolder folder;
  Tensor large(DType::kFloat32, {3, 200003});
  const Philox random(7);
  auto values = large.as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = UniformFloat(random.At(i)[0]);
  const Tensor small = FloatTensor({5}, 1);
  const auto record =
      WriteSafetensors(folder.Path("a"), {{"large", large.view()}, {"small", small.view()}});
  REQUIRE(record.ok());
  const auto file = SafetensorsFile::Open(folder.Path("a"));
  REQUIRE(file.ok());
  Tensor back(DType::kFloat32, large.shape());
  const auto crc = file->Read(file->entries()[0], back.view().bytes());
  REQUIRE(crc.ok());
  CHECK(*crc == Crc32c(large.view().bytes()));
  CHECK(*crc == record->tensors[0].crc32c);
  CHECK(*file->Checksum(file->entries()[0]) == *crc);
  CHECK(std::memcmp(back.data(), large.data(), large.num_bytes()) == 0);
}

TEST_CASE("names with quotes and backslashes come back the same") {
  const TemporaryFolder folder;
  const Tensor value = FloatTensor({1}, 1);
  const std::string name = "a \"quoted\" \\ name/with#all~";
  REQUIRE(WriteSafetensors(folder.Path("a"), {{name, value.view()}}).ok());
  CHECK(SafetensorsFile::Open(folder.Path("a"))->entries()[0].name == name);
}

TEST_CASE("names that a file cannot hold are refused before anything is written") {
  const TemporaryFolder folder;
  const Tensor value = FloatTensor({1}, 1);
  const auto code_of = [&](const std::vector<NamedTensor>& tensors) {
    return WriteSafetensors(folder.Path("a"), tensors).status().code();
  };
  for (const std::string& name :
       {std::string(), std::string("__metadata__"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("\xc3\xa4"), std::string("\xff"), std::string(4097, 'x')}) {
    CAPTURE(name);
    CHECK(code_of({{name, value.view()}}) == absl::StatusCode::kInvalidArgument);
  }
  CHECK(code_of({{"a", value.view()}, {"b", value.view()}, {"a", value.view()}}) ==
        absl::StatusCode::kInvalidArgument);
  CHECK(ListFolder(folder.path())->empty());
  CHECK(WriteSafetensors(folder.Path("a"), {{std::string(4096, 'x'), value.view()}}).ok());
}

}  // namespace
}  // namespace lockstep
