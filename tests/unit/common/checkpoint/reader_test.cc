#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/checkpoint/example_checkpoint.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;
using test::WriteExample;

TEST_CASE("tensors of all shards are read by name") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 42).ok());
  const auto reader = CheckpointReader::Open(root.Path("ckpt-42"));
  REQUIRE(reader.ok());
  CHECK(reader->manifest().step == 42);
  CHECK(reader->Has("w"));
  CHECK(reader->Has("w/momentum"));
  CHECK_FALSE(reader->Has("W"));
  const auto w = reader->Read("w");
  REQUIRE(w.ok());
  CHECK(w->shape() == Shape({2, 3}));
  CHECK(w->as<float>()[5] == 6);
  Tensor momentum(DType::kFloat32, {2, 3});
  REQUIRE(reader->ReadInto("w/momentum", momentum.view()).ok());
  CHECK(momentum.as<float>()[0] == -1);
  CHECK(reader->Read("n")->as<int64_t>()[0] == 42);
  CHECK(reader->Verify().ok());
}

TEST_CASE("a name that is not there is NOT_FOUND naming it") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 1).ok());
  const auto reader = CheckpointReader::Open(root.Path("ckpt-1"));
  const absl::Status status = reader->Read("v").status();
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(absl::StrContains(status.message(), "'v'"));
}

TEST_CASE("memory of another dtype or shape is refused naming both") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 1).ok());
  const auto reader = CheckpointReader::Open(root.Path("ckpt-1"));
  Tensor transposed(DType::kFloat32, {3, 2}), integers(DType::kInt32, {2, 3});
  const absl::Status shape = reader->ReadInto("w", transposed.view());
  CHECK(shape.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(shape.message(), "'w' is float32 [2,3], expected float32 [3,2]"));
  CHECK(reader->ReadInto("w", integers.view()).code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE(
    "a bit that flipped in a tensor is DATA_LOSS naming file and tensor, the others are read") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 1).ok());
  const std::string file = "ckpt-1/shard-1-of-2.safetensors";
  std::string bytes = root.Read(file);
  bytes[bytes.size() - 3] ^= 0x10;
  root.Write(file, bytes);
  const auto reader = CheckpointReader::Open(root.Path("ckpt-1"));
  REQUIRE(reader.ok());
  for (const absl::Status& status : {reader->Read("w/momentum").status(), reader->Verify()}) {
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(status.message(), root.Path(file)));
    CHECK(absl::StrContains(status.message(), "'w/momentum'"));
  }
  CHECK(reader->Read("n").ok());
  CHECK(reader->Read("w").ok());
}

TEST_CASE("a shard that was replaced by a folder or a pipe is DATA_LOSS and blocks nobody") {
  const TemporaryFolder root;
  REQUIRE(WriteExample(root.path(), 1).ok());
  std::filesystem::remove(root.Path("ckpt-1/shard-0-of-2.safetensors"));
  std::filesystem::create_directory(root.Path("ckpt-1/shard-0-of-2.safetensors"));
  CHECK(CheckpointReader::Open(root.Path("ckpt-1")).status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a folder without a manifest is NOT_FOUND") {
  const TemporaryFolder root;
  CHECK(CheckpointReader::Open(root.path()).status().code() == absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace lockstep
