#include "chief/checkpoint/checkpointer.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "chief/checkpoint/restorable.h"
#include "chief/loop/event_loop.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {
namespace {

// What a ps writes for its shard, and answers.
SaveReply WriteAsShard(const std::string& folder, uint32_t shard, const std::string& variable) {
  Tensor value(DType::kFloat32, Shape({3}));
  const absl::StatusOr<ShardFile> file = WriteShard(folder, shard, 2, {{variable, value.view()}});
  REQUIRE(file.ok());
  SaveReply reply;
  reply.set_file(file->file);
  reply.set_bytes(file->bytes);
  SaveReply::TensorRecord* tensor = reply.add_tensors();
  tensor->set_name(variable);
  tensor->set_dtype(FLOAT32);
  tensor->add_dims(3);
  tensor->set_crc32c(file->tensors[0].crc32c);
  return reply;
}

struct Fixture {
  explicit Fixture(const std::string& root) : claim(root) {
    CheckpointerOptions options;
    options.command.set_term(4);
    options.root = root;
    options.keep_last = 2;
    options.manifest.optimizer = "sgd";
    options.manifest.epoch = 6;
    REQUIRE(claim.Take({.job = 3, .epoch = 6, .term = 4, .chief = 8}).ok());
    options.claim = &claim;
    options.warn = [this](std::string text) { warnings.push_back(std::move(text)); };
    checkpointer.emplace(options, std::vector<PsControl*>{&a, &b}, &loop);
  }

  void Save(int64_t version) {
    result.reset();
    checkpointer->Save(GlobalStep(version), [this](absl::StatusOr<std::string> folder) {
      result = std::move(folder);
      loop.Quit();
    });
  }

  // The shards write, and the chief's part of the save ends.
  void Finish() {
    const std::string folder = a.saves.front().folder();
    a.saves.Answer(WriteAsShard(folder, 0, "fc/kernel"));
    b.saves.Answer(WriteAsShard(folder, 1, "fc/bias"));
    loop.Run(absl::Hours(1), [] {});
  }

  ScriptedPs a, b;
  EventLoop loop;
  FolderClaim claim;
  std::vector<std::string> warnings;
  std::optional<absl::StatusOr<std::string>> result;
  std::optional<Checkpointer> checkpointer;
};

TEST_CASE("a checkpoint exists when every shard has written and the manifest names them") {
  const test::TemporaryFolder root;
  Fixture f(root.path());
  f.Save(40);
  CHECK(f.checkpointer->busy());
  REQUIRE(f.b.saves.size() == 1);
  const std::string folder = f.b.saves.front().folder();
  CHECK(folder == CheckpointFolder(root.path(), 40));
  CHECK(f.b.saves.front().version() == 40);
  CHECK(f.b.saves.front().command().term() == 4);
  f.b.saves.Answer(WriteAsShard(folder, 1, "fc/bias"));
  CHECK_FALSE(ReadManifest(folder).ok());
  f.a.saves.Answer(WriteAsShard(folder, 0, "fc/kernel"));
  f.loop.Run(absl::Hours(1), [] {});
  REQUIRE(f.result.has_value());
  REQUIRE(f.result->ok());
  CHECK(**f.result == folder);
  CHECK_FALSE(f.checkpointer->busy());

  const absl::StatusOr<std::string> newest = ResolveCheckpoint(root.path());
  REQUIRE(newest.ok());
  CHECK(*newest == folder);
  const absl::StatusOr<Manifest> manifest = ReadManifest(folder);
  REQUIRE(manifest.ok());
  CHECK(manifest->step == 40);
  CHECK(manifest->epoch == 6);
  REQUIRE(manifest->shards.size() == 2);
  CHECK(manifest->shards[1].tensors[0].name == "fc/bias");
}

TEST_CASE("a shard that fails fails the checkpoint, which does not exist, and the next one works") {
  const test::TemporaryFolder root;
  {
    Fixture f(root.path());
    f.Save(40);
    f.a.saves.Answer(WriteAsShard(f.a.saves.front().folder(), 0, "fc/kernel"));
    f.b.saves.Answer(absl::ResourceExhaustedError("disk full"));
    f.loop.Run(absl::Hours(1), [] {});
    REQUIRE(f.result.has_value());
    CHECK(f.result->status().code() == absl::StatusCode::kResourceExhausted);
    CHECK_FALSE(f.checkpointer->busy());
  }
  CHECK_FALSE(ResolveCheckpoint(root.path()).ok());
  Fixture f(root.path());
  f.Save(50);
  f.a.saves.Answer(WriteAsShard(f.a.saves.front().folder(), 0, "fc/kernel"));
  f.b.saves.Answer(WriteAsShard(f.b.saves.front().folder(), 1, "fc/bias"));
  f.loop.Run(absl::Hours(1), [] {});
  CHECK(f.result->ok());
  CHECK_FALSE(std::filesystem::exists(CheckpointFolder(root.path(), 40)));
}

TEST_CASE("a chief that was stopped in a save publishes nothing once another one has the folder") {
  const test::TemporaryFolder root;
  Fixture stopped(root.path());
  stopped.Save(40);
  Fixture successor(root.path());
  REQUIRE(successor.claim.Take({.job = 3, .epoch = 6, .term = 5, .chief = 9}).ok());
  successor.Save(50);
  successor.Finish();
  REQUIRE(successor.result->ok());
  stopped.Finish();
  CHECK(stopped.result->status().code() == absl::StatusCode::kAborted);
  CHECK(root.Read("LATEST") == "ckpt-50\n");
  CHECK_FALSE(ReadManifest(root.Path("ckpt-40")).ok());
}

TEST_CASE("a shard that says what is not so fails the checkpoint") {
  const test::TemporaryFolder root;
  Fixture f(root.path());
  f.Save(40);
  const std::string folder = f.a.saves.front().folder();
  f.a.saves.Answer(WriteAsShard(folder, 0, "fc/kernel"));
  SaveReply absent = WriteAsShard(folder, 1, "fc/bias");
  absent.set_file("shard-1-of-3.safetensors");
  f.b.saves.Answer(absent);
  f.loop.Run(absl::Hours(1), [] {});
  CHECK_FALSE(f.result->ok());

  SaveReply nonsense;
  nonsense.set_file("shard-0-of-2.safetensors");
  nonsense.add_tensors()->set_name("fc/kernel");
  CHECK(ToShardFile(nonsense).status().code() == absl::StatusCode::kInvalidArgument);
  nonsense.mutable_tensors(0)->set_dtype(FLOAT32);
  nonsense.mutable_tensors(0)->add_dims(-1);
  CHECK(ToShardFile(nonsense).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a checkpoint can be restored by a job with the same variables and optimizer only") {
  Manifest manifest;
  manifest.optimizer = "adam";
  manifest.shards = {{"shard-0-of-1.safetensors",
                      100,
                      {{"fc/kernel", DType::kFloat32, Shape({2, 3}), 0},
                       {"fc/kernel/m", DType::kFloat32, Shape({2, 3}), 0}}}};
  Placement placement;
  VariableSpec* variable = placement.add_variables();
  variable->set_name("fc/kernel");
  variable->set_dtype(FLOAT32);
  variable->add_dims(2);
  variable->add_dims(3);
  CHECK(CheckRestorable(manifest, placement, "adam").ok());
  CHECK(std::string(CheckRestorable(manifest, placement, "sgd").message()).find("optimizer adam") !=
        std::string::npos);
  variable->set_dims(1, 4);
  const absl::Status shape = CheckRestorable(manifest, placement, "adam");
  CHECK(shape.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(shape.message()).find("float32[2,4]") != std::string::npos);
  CHECK(std::string(shape.message()).find("float32[2,3]") != std::string::npos);
  variable->set_name("fc2/kernel");
  CHECK(std::string(CheckRestorable(manifest, placement, "adam").message()).find("fc2/kernel") !=
        std::string::npos);
}

}  // namespace
}  // namespace lockstep::chief
