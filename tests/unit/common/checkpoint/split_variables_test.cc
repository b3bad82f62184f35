// Variables that are split by rows, read as if they were not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

// float32 [rows, 2], element i being first + i.
Tensor Rows(int64_t rows, float first) {
  Tensor tensor(DType::kFloat32, {rows, 2});
  for (int64_t i = 0; i < 2 * rows; ++i) tensor.as<float>()[i] = first + static_cast<float>(i);
  return tensor;
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

std::vector<float> Counting(int count, float first) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// "t" has 5 rows in parts of 2, 2 and 1 on two shards, its slot "t/m" the same, negative from -100.
class Split {
 public:
  Split() {
    const Tensor parts[] = {Rows(2, 0), Rows(2, 4), Rows(1, 8)};
    const Tensor slots[] = {Rows(2, -100), Rows(2, -96), Rows(1, -92)};
    Write({{{"t#2", parts[2].view()},
            {"t#2/m", slots[2].view()},
            {"t#0", parts[0].view()},
            {"t#0/m", slots[0].view()}},
           {{"t#1", parts[1].view()}, {"t#1/m", slots[1].view()}}});
  }
  explicit Split(const std::vector<std::vector<NamedTensor>>& shards) { Write(shards); }

  const CheckpointReader& reader() const { return *reader_; }
  const TemporaryFolder& root() const { return root_; }
  void Open() {
    auto opened = CheckpointReader::Open(root_.Path("ckpt-1"));
    REQUIRE(opened.ok());
    reader_.emplace(*std::move(opened));
  }

 private:
  void Write(const std::vector<std::vector<NamedTensor>>& shards) {
    Manifest manifest;
    manifest.step = 1;
    for (size_t i = 0; i < shards.size(); ++i) {
      auto file = WriteShard(CheckpointFolder(root_.path(), 1), static_cast<uint32_t>(i),
                             static_cast<uint32_t>(shards.size()), shards[i]);
      REQUIRE(file.ok());
      manifest.shards.push_back(*std::move(file));
    }
    REQUIRE(CommitCheckpoint(root_.path(), manifest, 0).ok());
    Open();
  }

  TemporaryFolder root_;
  std::optional<CheckpointReader> reader_;
};

TEST_CASE("a split variable and its slots are read whole, by the variable's name") {
  const Split split;
  const CheckpointReader& reader = split.reader();
  CHECK(reader.Has("t"));
  CHECK(reader.Has("t/m"));
  CHECK(reader.Has("t#1"));
  CHECK_FALSE(reader.Has("t/v"));
  const auto whole = reader.Read("t");
  REQUIRE(whole.ok());
  CHECK(whole->shape() == Shape({5, 2}));
  CHECK(ValuesOf(*whole) == Counting(10, 0));
  Tensor slot(DType::kFloat32, {5, 2});
  REQUIRE(reader.ReadInto("t/m", slot.view()).ok());
  CHECK(ValuesOf(slot) == Counting(10, -100));
  CHECK(ValuesOf(*reader.Read("t#1")) == Counting(4, 4));
  Tensor small(DType::kFloat32, {4, 2});
  const absl::Status status = reader.ReadInto("t", small.view());
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "'t' is float32 [5,2], expected float32 [4,2]"));
}

TEST_CASE("any rows are read, wherever the parts were cut") {
  const Split split;
  const Tensor uncut = Rows(5, 0);
  const Split whole({{{"t", uncut.view()}}});
  for (const Split* from : {&split, &whole}) {
    for (int64_t first = 0; first <= 5; ++first) {
      for (int64_t rows = 0; first + rows <= 5; ++rows) {
        Tensor value(DType::kFloat32, {rows, 2});
        REQUIRE(from->reader().ReadRows("t", Shape({5, 2}), first, value.view()).ok());
        CHECK(ValuesOf(value) == Counting(static_cast<int>(2 * rows), 2.0f * first));
      }
    }
    Tensor value(DType::kFloat32, {1, 2});
    CHECK(absl::IsInvalidArgument(from->reader().ReadRows("t", Shape({6, 2}), 0, value.view())));
    CHECK(absl::IsNotFound(from->reader().ReadRows("u", Shape({5, 2}), 0, value.view())));
  }
}

TEST_CASE("a table of thousands of parts, some of them empty, is read part by part") {
  constexpr int64_t kParts = 4096;
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> parts;
  int64_t rows = 0;
  for (int64_t part = 0; part < kParts; ++part) {
    tensors.push_back(Rows(part % 3, 2.0f * static_cast<float>(rows)));
    rows += part % 3;
  }
  for (int64_t part = 0; part < kParts; ++part) {
    parts.push_back({absl::StrCat("t#", part), tensors[part].view()});
  }
  const Split split({parts});
  for (int64_t first = 0; first < rows; ++first) {
    Tensor value(DType::kFloat32, {std::min<int64_t>(3, rows - first), 2});
    REQUIRE(split.reader().ReadRows("t", Shape({rows, 2}), first, value.view()).ok());
    REQUIRE(value.as<float>()[0] == 2.0f * static_cast<float>(first));
    REQUIRE(value.as<float>().back() == value.as<float>()[0] + 2 * value.shape().dim(0) - 1);
  }
}

TEST_CASE("a part with a flipped bit is DATA_LOSS where it is read whole") {
  Split split;
  const std::string file = "ckpt-1/shard-1-of-2.safetensors";
  std::string bytes = split.root().Read(file);
  bytes.back() ^= 1;  // of t#1/m
  split.root().Write(file, bytes);
  split.Open();
  CHECK(absl::IsDataLoss(split.reader().Read("t/m").status()));
  CHECK(split.reader().Read("t").ok());
  CHECK(absl::IsDataLoss(split.reader().Verify()));
}

TEST_CASE("rows cut out of a part with a flipped bit are DATA_LOSS naming file and tensor") {
  const Tensor uncut = Rows(5, 0), large = Rows(300'000, 0);  // of 2.4 MB: read in several pieces
  Split split({{{"large", large.view()}}, {{"t", uncut.view()}}});
  for (const char* shard : {"0", "1"}) {
    const std::string name = absl::StrCat("ckpt-1/shard-", shard, "-of-2.safetensors");
    std::string bytes = split.root().Read(name);
    bytes.back() ^= 1;  // of the last row
    split.root().Write(name, bytes);
  }
  split.Open();
  const auto cut = [&](const std::string& tensor, int64_t of, int64_t first, int64_t rows) {
    Tensor value(DType::kFloat32, {rows, 2});
    return split.reader().ReadRows(tensor, Shape({of, 2}), first, value.view());
  };
  for (const auto& [first, rows] : {std::pair(0, 1), {3, 2}, {4, 1}, {0, 5}}) {
    const absl::Status status = cut("t", 5, first, rows);
    CHECK(absl::IsDataLoss(status));
    CHECK(absl::StrContains(status.message(), "ckpt-1/shard-1-of-2.safetensors: tensor 't'"));
    CHECK(absl::StrContains(status.message(), "Remedy"));
  }
  for (const auto& [first, rows] : {std::pair(0, 1), {140'000, 20'000}, {299'999, 1}}) {
    const absl::Status status = cut("large", 300'000, first, rows);
    CHECK(absl::IsDataLoss(status));
    CHECK(absl::StrContains(status.message(), "tensor 'large' is damaged"));
  }
}

TEST_CASE("rows are cut out of a part that is read in several pieces") {
  const Tensor large = Rows(300'000, 0);
  const Split split({{{"t", large.view()}}});
  for (const auto& [first, rows] :
       {std::pair<int64_t, int64_t>(0, 1), {131'071, 2}, {100'000, 200'000}, {5, 299'000}}) {
    Tensor value(DType::kFloat32, {rows, 2});
    REQUIRE(split.reader().ReadRows("t", Shape({300'000, 2}), first, value.view()).ok());
    CHECK(value.as<float>().front() == 2.0f * static_cast<float>(first));
    CHECK(value.as<float>().back() == 2.0f * static_cast<float>(first + rows) - 1);
  }
}

TEST_CASE("parts whose rows add up to more than can be counted are DATA_LOSS") {
  Manifest manifest;
  manifest.shards.push_back({"shard-0-of-1.safetensors", 0, {}});
  for (int part = 0; part < 32; ++part) {  // 2^64 rows
    manifest.shards[0].tensors.push_back(
        {absl::StrCat("t#", part), DType::kFloat32, Shape({int64_t{1} << 59, 0}), 0});
  }
  const absl::Status status = WholeTensors(manifest).Find("t").status();
  CHECK(absl::IsDataLoss(status));
  CHECK(absl::StrContains(status.message(), "'t' is too large"));
}

TEST_CASE("parts that do not make a whole are DATA_LOSS naming them") {
  const Tensor two = Rows(2, 0), wide = Tensor::Zeros(DType::kFloat32, {2, 3}),
               other = Tensor::Zeros(DType::kInt64, {2, 2}),
               scalar = Tensor::Zeros(DType::kFloat32, {});
  const auto error = [](const std::vector<NamedTensor>& tensors) {
    const absl::Status status = Split({tensors}).reader().Read("t").status();
    CHECK(absl::IsDataLoss(status));
    return std::string(status.message());
  };
  CHECK(absl::StrContains(error({{"t#0", two.view()}, {"t#2", two.view()}}),
                          "part 1 of tensor 't' is missing"));
  CHECK(absl::StrContains(error({{"t#1", two.view()}}), "part 0 of tensor 't' is missing"));
  CHECK(absl::StrContains(error({{"t#0", two.view()}, {"t#1", wide.view()}}),
                          "'t#0' is float32 [2,2], 't#1' is float32 [2,3]"));
  CHECK(absl::StrContains(error({{"t#0", two.view()}, {"t#1", other.view()}}), "int64"));
  CHECK(absl::StrContains(error({{"t#0", scalar.view()}}), "do not fit"));
}

TEST_CASE("names that only look like parts are names") {
  const Tensor two = Rows(2, 0), three = Rows(3, 7);
  const Split split({{{"a#", two.view()},
                      {"a#x", two.view()},
                      {"a#01", two.view()},
                      {"b", three.view()},
                      {"b#0", two.view()}}});
  CHECK_FALSE(split.reader().Has("a"));
  CHECK(ValuesOf(*split.reader().Read("a#01")) == Counting(4, 0));
  // What has the name itself comes first.
  CHECK(ValuesOf(*split.reader().Read("b")) == Counting(6, 7));
  CHECK(ValuesOf(*split.reader().Read("b#0")) == Counting(4, 0));
}

}  // namespace
}  // namespace lockstep
