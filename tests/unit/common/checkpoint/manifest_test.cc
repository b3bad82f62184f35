#include "common/checkpoint/manifest.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checksum/crc32c.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

Manifest Example() {
  Manifest manifest;
  manifest.step = 1200;
  manifest.epoch = 3;
  manifest.origin = {.epoch = 2, .step = 900};
  manifest.seed = UINT64_MAX;
  manifest.lockstep_version = "0.1.0";
  manifest.optimizer = "adam";
  manifest.model = "name: \"digits\"\nlayers { name: \"x\" }\n";
  manifest.job = "max_steps: 9";
  manifest.cluster = "{\"ps\":[\"a:1\"]}";
  manifest.shards = {
      {"shard-0-of-2.safetensors",
       1234,
       {{"fc/kernel", DType::kFloat32, Shape({3, 2}), 0xe3069283}, {"s", DType::kInt64, {}, 0}}},
      {"shard-1-of-2.safetensors", 8, {}, /*is_finite=*/false}};
  return manifest;
}

// The manifest with a change and a checksum that is right all the same.
std::string Changed(const std::function<void(Json&)>& change) {
  Json json = Json::parse(EncodeManifest(Example()));
  change(json);
  json.erase("manifest_crc32c");
  const std::string text = json.dump();
  json["manifest_crc32c"] = Crc32c(std::as_bytes(std::span(text.data(), text.size())));
  return json.dump();
}

TEST_CASE("a manifest comes back as it was written") {
  const Manifest expected = Example();
  const auto manifest = DecodeManifest(EncodeManifest(expected));
  REQUIRE(manifest.ok());
  CHECK(manifest->step == expected.step);
  CHECK(manifest->epoch == expected.epoch);
  CHECK(manifest->origin == expected.origin);
  CHECK(manifest->seed == expected.seed);
  CHECK(manifest->lockstep_version == expected.lockstep_version);
  CHECK(manifest->optimizer == expected.optimizer);
  CHECK(manifest->model == expected.model);
  CHECK(manifest->job == expected.job);
  CHECK(manifest->cluster == expected.cluster);
  REQUIRE(manifest->shards.size() == 2);
  CHECK(manifest->shards[0].file == expected.shards[0].file);
  CHECK(manifest->shards[0].bytes == 1234);
  REQUIRE(manifest->shards[0].tensors.size() == 2);
  CHECK(manifest->shards[0].tensors[0].name == "fc/kernel");
  CHECK(manifest->shards[0].tensors[0].dtype == DType::kFloat32);
  CHECK(manifest->shards[0].tensors[0].shape == Shape({3, 2}));
  CHECK(manifest->shards[0].tensors[0].crc32c == 0xe3069283);
  CHECK(manifest->shards[0].tensors[1].shape == Shape({}));
  CHECK(manifest->shards[1].tensors.empty());
  CHECK(manifest->shards[0].is_finite);
  CHECK_FALSE(manifest->shards[1].is_finite);
  CHECK_FALSE(manifest->IsFinite());
}

TEST_CASE("a manifest is formatted for people and keeps its checksum when formatted anew") {
  const std::string text = EncodeManifest(Example());
  CHECK(absl::StrContains(text, "\n  \"step\": 1200"));
  CHECK(DecodeManifest(Json::parse(text).dump()).ok());
}

TEST_CASE("text that is not UTF-8 does not cost the checkpoint") {
  Manifest manifest = Example();
  manifest.job = "name: \"\xff\"";
  const auto back = DecodeManifest(EncodeManifest(manifest));
  REQUIRE(back.ok());
  CHECK(back->job == "name: \"\xef\xbf\xbd\"");
}

TEST_CASE("a changed manifest is not believed") {
  const std::string text = EncodeManifest(Example());
  std::string edited = text;
  edited.replace(edited.find("1200"), 4, "1300");
  const absl::Status status = DecodeManifest(edited).status();
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(status.message(), "damaged or edited"));
}

TEST_CASE("no bit of a manifest can flip unseen") {
  const std::string text = Json::parse(EncodeManifest(Example())).dump();
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      CAPTURE(at, bit);
      CHECK_FALSE(DecodeManifest(damaged).ok());
    }
  }
}

TEST_CASE("no end of a manifest can be missing") {
  const std::string text = Json::parse(EncodeManifest(Example())).dump();
  for (size_t size = 0; size < text.size(); ++size)
    CHECK(DecodeManifest(text.substr(0, size)).status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a manifest of a later version is refused with the remedy") {
  const absl::Status status =
      DecodeManifest(Changed([](Json& json) { json["format_version"] = 4; })).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(status.message(), "Remedy"));
}

TEST_CASE("a manifest of the first version has no origin") {
  const std::string first = Changed([](Json& json) {
    json["format_version"] = 1;
    json.erase("origin");
    for (Json& shard : json["shards"]) shard.erase("finite");
  });
  REQUIRE(DecodeManifest(first).ok());
  CHECK(DecodeManifest(first)->origin == CheckpointOrigin());
  CHECK_FALSE(DecodeManifest(Changed([](Json& json) { json["format_version"] = 1; })).ok());
}

TEST_CASE("a manifest from before values were checked counts as finite") {
  const std::string second = Changed([](Json& json) {
    json["format_version"] = 2;
    for (Json& shard : json["shards"]) shard.erase("finite");
  });
  REQUIRE(DecodeManifest(second).ok());
  CHECK(DecodeManifest(second)->IsFinite());
  CHECK(DecodeManifest(second)->origin == Example().origin);
  CHECK_FALSE(DecodeManifest(Changed([](Json& json) { json["format_version"] = 2; })).ok());
}

TEST_CASE("what is not the text of a manifest is refused") {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"),
        std::string("{\"manifest_crc32c\":\"x\"}"), std::string("{\"manifest_crc32c\":-1}"),
        std::string("\0", 1), std::string(1000, '['), std::string("{\"a\":1,\"a\":1}"),
        EncodeManifest(Example()) + "x", EncodeManifest(Example()) + std::string("\0", 1)}) {
    CAPTURE(text.substr(0, 60));
    CHECK(DecodeManifest(text).status().code() == absl::StatusCode::kDataLoss);
  }
}

TEST_CASE("every field must be there, of its type and sound, and no other") {
  struct Row {
    const char* problem;
    std::function<void(Json&)> change;
  };
  const Row rows[] = {
      {"format is not lockstep-checkpoint", [](Json& j) { j["format"] = "other"; }},
      {"format is missing", [](Json& j) { j.erase("format"); }},
      {"format_version is missing", [](Json& j) { j.erase("format_version"); }},
      {"step is missing", [](Json& j) { j.erase("step"); }},
      {"step is not a whole number", [](Json& j) { j["step"] = -1; }},
      {"step is not a whole number", [](Json& j) { j["step"] = 1.0; }},
      {"step is not a whole number", [](Json& j) { j["step"] = "1"; }},
      {"step is not a whole number", [](Json& j) { j["step"] = uint64_t{1} << 63; }},
      {"epoch is not a whole number", [](Json& j) { j["epoch"] = nullptr; }},
      {"origin is missing", [](Json& j) { j.erase("origin"); }},
      {"origin.not an object", [](Json& j) { j["origin"] = 3; }},
      {"origin.step is missing", [](Json& j) { j["origin"].erase("step"); }},
      {"origin.epoch is not a whole number", [](Json& j) { j["origin"]["epoch"] = -1; }},
      {"seed is missing", [](Json& j) { j.erase("seed"); }},
      {"model is not a string", [](Json& j) { j["model"] = 5; }},
      {"optimizer is missing", [](Json& j) { j.erase("optimizer"); }},
      {"unknown field 'extra'", [](Json& j) { j["extra"] = 1; }},
      {"shards is not a list", [](Json& j) { j["shards"] = Json::object(); }},
      {"shards[1].not an object", [](Json& j) { j["shards"][1] = 4; }},
      {"shards[0].bytes is missing", [](Json& j) { j["shards"][0].erase("bytes"); }},
      {"shards[0].finite is missing", [](Json& j) { j["shards"][0].erase("finite"); }},
      {"shards[0].finite is neither true nor false", [](Json& j) { j["shards"][0]["finite"] = 1; }},
      {"shards[0].unknown field 'x'", [](Json& j) { j["shards"][0]["x"] = 1; }},
      {"file '' is not a name", [](Json& j) { j["shards"][0]["file"] = ""; }},
      {"file '..' is not a name", [](Json& j) { j["shards"][0]["file"] = ".."; }},
      {"file '../x' is not a name", [](Json& j) { j["shards"][0]["file"] = "../x"; }},
      {"file '/etc/passwd' is not a name", [](Json& j) { j["shards"][0]["file"] = "/etc/passwd"; }},
      {"file 'a/b' is not a name", [](Json& j) { j["shards"][0]["file"] = "a/b"; }},
      {"is not a name", [](Json& j) { j["shards"][0]["file"] = std::string("a\0b", 3); }},
      {"is not a name", [](Json& j) { j["shards"][0]["file"] = std::string(256, 'a'); }},
      {"file 'shard-1-of-2.safetensors' comes twice",
       [](Json& j) { j["shards"][0]["file"] = "shard-1-of-2.safetensors"; }},
      {"tensor 's' comes twice",
       [](Json& j) { j["shards"][1]["tensors"].push_back(j["shards"][0]["tensors"][1]); }},
      {"shards[0].tensors[1].name is missing",
       [](Json& j) { j["shards"][0]["tensors"][1].erase("name"); }},
      {"dtype 'float33' is unknown",
       [](Json& j) { j["shards"][0]["tensors"][0]["dtype"] = "float33"; }},
      {"crc32c is not a whole number",
       [](Json& j) { j["shards"][0]["tensors"][0]["crc32c"] = uint64_t{1} << 32; }},
      {"shape is not a list", [](Json& j) { j["shards"][0]["tensors"][0]["shape"] = 3; }},
      {"not a whole number", [](Json& j) { j["shards"][0]["tensors"][0]["shape"] = {-3}; }},
      {"more elements", [](Json& j) {
         j["shards"][0]["tensors"][0]["shape"] = {uint64_t{1} << 40, uint64_t{1} << 40};
       }}};
  for (const Row& row : rows) {
    const absl::Status status = DecodeManifest(Changed(row.change)).status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(status.message()), Catch::Contains(row.problem));
  }
  CHECK(DecodeManifest(Changed([](Json&) {})).ok());
}

}  // namespace
}  // namespace lockstep
