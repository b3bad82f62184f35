#include "common/checkpoint/manifest.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/json_checksum.h"
#include "common/checkpoint/json_fields.h"
#include "common/checkpoint/strict_json.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "lockstep-checkpoint";
constexpr uint64_t kFormatVersion = 3;
constexpr uint64_t kFirstWithOrigin = 2;
constexpr uint64_t kFirstWithFinite = 3;
constexpr char kChecksum[] = "manifest_crc32c";
constexpr int kManifestDepth = 6;  // manifest, shards, shard, tensors, tensor, shape

absl::StatusOr<TensorRecord> DecodeTensor(const Json& json, const std::string& where) {
  TensorRecord tensor;
  std::string dtype;
  JsonFields fields(json, where);
  fields.Read("name", tensor.name);
  fields.Read("dtype", dtype);
  fields.Read("crc32c", tensor.crc32c);
  fields.ReadShape("shape", tensor.shape);
  LOCKSTEP_RETURN_IF_ERROR(fields.Finish());
  const auto parsed = ParseDType(dtype);
  if (!parsed.has_value())
    return absl::DataLossError(
        absl::StrCat(where, "dtype '", absl::CEscape(dtype), "' is unknown"));
  tensor.dtype = *parsed;
  return tensor;
}

absl::StatusOr<ShardFile> DecodeShard(const Json& json, const std::string& where,
                                      uint64_t version) {
  ShardFile shard;
  JsonFields fields(json, where);
  fields.Read("file", shard.file);
  fields.Read("bytes", shard.bytes);
  if (version >= kFirstWithFinite) fields.Read("finite", shard.is_finite);
  fields.ReadList("tensors", [&](const Json& element, const std::string& place) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(shard.tensors.emplace_back(), DecodeTensor(element, place));
    return absl::OkStatus();
  });
  LOCKSTEP_RETURN_IF_ERROR(fields.Finish());
  if (!IsEntryName(shard.file)) {
    return absl::DataLossError(absl::StrCat(where, "file '", absl::CEscape(shard.file),
                                            "' is not a name inside the folder"));
  }
  return shard;
}

absl::Status CheckNoneTwice(const Manifest& manifest) {
  std::set<absl::string_view> files, tensors;
  for (const ShardFile& shard : manifest.shards) {
    if (!files.insert(shard.file).second)
      return absl::DataLossError(absl::StrCat("file '", shard.file, "' comes twice"));
    for (const TensorRecord& tensor : shard.tensors) {
      if (!tensors.insert(tensor.name).second)
        return absl::DataLossError(
            absl::StrCat("tensor '", absl::CEscape(tensor.name), "' comes twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  Json shards = Json::array();
  for (const ShardFile& shard : manifest.shards) {
    Json tensors = Json::array();
    for (const TensorRecord& tensor : shard.tensors) {
      const auto dims = tensor.shape.dims();
      tensors.push_back({{"name", tensor.name},
                         {"dtype", std::string(Name(tensor.dtype))},
                         {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                         {"crc32c", tensor.crc32c}});
    }
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"finite", shard.is_finite},
                      {"tensors", std::move(tensors)}});
  }
  Json json = {{"format", kFormat},
               {"format_version", kFormatVersion},
               {"step", manifest.step},
               {"epoch", manifest.epoch},
               {"origin", OriginToJson(manifest.origin)},
               {"seed", manifest.seed},
               {"lockstep_version", manifest.lockstep_version},
               {"optimizer", manifest.optimizer},
               {"model", manifest.model},
               {"job", manifest.job},
               {"cluster", manifest.cluster},
               {"shards", std::move(shards)}};
  AddChecksum(kChecksum, &json);
  return json.dump(2) + "\n";
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(Json json, ParseStrictJson(text, kManifestDepth));
  if (!json.is_object()) return absl::DataLossError("not an object");
  const auto checksum = json.find(kChecksum);
  if (checksum == json.end() || !checksum->is_number_unsigned())
    return absl::DataLossError(absl::StrCat(kChecksum, " is missing"));
  LOCKSTEP_RETURN_IF_ERROR(TakeChecksum(kChecksum, &json));

  Manifest manifest;
  std::string format;
  uint64_t version = 0;
  JsonFields fields(json, "");
  fields.Read("format", format);
  fields.Read("format_version", version);
  if (!format.empty() && format != kFormat) fields.Wrong("format is not lockstep-checkpoint");
  if (format == kFormat && version > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("format_version ", version,
                                                      ", this build reads up to ", kFormatVersion,
                                                      ". Remedy: use a newer Lockstep"));
  }
  fields.Read("step", manifest.step);
  fields.Read("epoch", manifest.epoch);
  if (version >= kFirstWithOrigin) {
    fields.ReadObject("origin", [&](const Json& json, const std::string& place) {
      return OriginFromJson(json, place, &manifest.origin);
    });
  }
  fields.Read("seed", manifest.seed);
  fields.Read("lockstep_version", manifest.lockstep_version);
  fields.Read("optimizer", manifest.optimizer);
  fields.Read("model", manifest.model);
  fields.Read("job", manifest.job);
  fields.Read("cluster", manifest.cluster);
  fields.ReadList("shards", [&](const Json& element, const std::string& place) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(manifest.shards.emplace_back(), DecodeShard(element, place, version));
    return absl::OkStatus();
  });
  LOCKSTEP_RETURN_IF_ERROR(fields.Finish());
  LOCKSTEP_RETURN_IF_ERROR(CheckNoneTwice(manifest));
  return manifest;
}

}  // namespace lockstep
