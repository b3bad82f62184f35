#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

std::string Description(DType dtype, const Shape& shape) {
  return absl::StrCat(Name(dtype), " ", shape.ToString());
}

}  // namespace

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& folder) {
  CheckpointReader reader;
  reader.folder_ = folder;
  LOCKSTEP_ASSIGN_OR_RETURN(reader.manifest_, ReadManifest(folder));
  for (const ShardFile& shard : reader.manifest_.shards)
    LOCKSTEP_RETURN_IF_ERROR(reader.AddShard(shard));
  return reader;
}

absl::Status CheckpointReader::AddShard(const ShardFile& shard) {
  const std::string path = JoinPath(folder_, shard.file);
  const auto wrong = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(path, ": ", what));
  };
  auto opened = SafetensorsFile::Open(path);
  if (absl::IsNotFound(opened.status()) || absl::IsInvalidArgument(opened.status()))
    return absl::DataLossError(opened.status().message());
  LOCKSTEP_RETURN_IF_ERROR(opened.status());
  const auto& entries = opened->entries();
  if (opened->bytes() != shard.bytes)
    return wrong(absl::StrCat(opened->bytes(), " bytes, the manifest says ", shard.bytes));
  if (entries.size() != shard.tensors.size()) {
    return wrong(
        absl::StrCat(entries.size(), " tensors, the manifest says ", shard.tensors.size()));
  }
  std::map<absl::string_view, const TensorRecord*> records;
  for (const TensorRecord& record : shard.tensors) records.emplace(record.name, &record);
  for (size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& entry = entries[i];
    const auto record = records.find(entry.name);
    if (record == records.end())
      return wrong(absl::StrCat("tensor '", entry.name, "' is not in the manifest"));
    const TensorRecord& expected = *record->second;
    if (entry.dtype != expected.dtype || !(entry.shape == expected.shape)) {
      return wrong(absl::StrCat("tensor '", entry.name, "' is ",
                                Description(entry.dtype, entry.shape), ", the manifest says ",
                                Description(expected.dtype, expected.shape)));
    }
    index_[entry.name] = Place{files_.size(), i, expected.crc32c};
  }
  files_.push_back(*std::move(opened));
  return absl::OkStatus();
}

absl::StatusOr<const CheckpointReader::Place*> CheckpointReader::Find(
    const std::string& name) const {
  const auto place = index_.find(name);
  if (place == index_.end())
    return absl::NotFoundError(absl::StrCat(folder_, ": no tensor '", name, "' in it"));
  return &place->second;
}

absl::Status CheckpointReader::CheckCrc(const Place& place, uint32_t got) const {
  if (got == place.crc32c) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(JoinPath(folder_, manifest_.shards[place.file].file), ": tensor '",
                   files_[place.file].entries()[place.entry].name, "' is damaged: CRC32C ", got,
                   ", the manifest says ", place.crc32c, ". Remedy: use another checkpoint"));
}

absl::StatusOr<Tensor> CheckpointReader::Read(const std::string& name) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Place* place, Find(name));
  const SafetensorsEntry& entry = files_[place->file].entries()[place->entry];
  Tensor tensor(entry.dtype, entry.shape);
  LOCKSTEP_RETURN_IF_ERROR(ReadInto(name, tensor.view()));
  return tensor;
}

absl::Status CheckpointReader::ReadInto(const std::string& name, MutableTensorView value) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const Place* place, Find(name));
  const SafetensorsFile& file = files_[place->file];
  const SafetensorsEntry& entry = file.entries()[place->entry];
  if (entry.dtype != value.dtype || !(entry.shape == value.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder_, ": tensor '", name, "' is ", Description(entry.dtype, entry.shape),
                     ", expected ", Description(value.dtype, value.shape)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t crc, file.Read(entry, value.bytes()));
  return CheckCrc(*place, crc);
}

absl::Status CheckpointReader::Verify() const {
  for (const auto& [name, place] : index_) {
    const SafetensorsFile& file = files_[place.file];
    LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t crc, file.Checksum(file.entries()[place.entry]));
    LOCKSTEP_RETURN_IF_ERROR(CheckCrc(place, crc));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
