#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
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
  reader.wholes_ = WholeTensors(reader.manifest_);
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

absl::StatusOr<const WholeTensor*> CheckpointReader::Find(const std::string& name) const {
  auto whole = wholes_.Find(name);
  if (whole.ok()) return whole;
  return absl::Status(whole.status().code(),
                      absl::StrCat(folder_, ": ", whole.status().message(), " in it"));
}

absl::Status CheckpointReader::CheckType(const std::string& name, const WholeTensor& whole,
                                         DType dtype, const Shape& shape) const {
  if (whole.dtype == dtype && whole.shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(folder_, ": tensor '", name, "' is ",
                                                 Description(whole.dtype, whole.shape),
                                                 ", expected ", Description(dtype, shape)));
}

absl::Status CheckpointReader::CheckCrc(const Place& place, uint32_t got) const {
  if (got == place.crc32c) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(JoinPath(folder_, manifest_.shards[place.file].file), ": tensor '",
                   files_[place.file].entries()[place.entry].name, "' is damaged: CRC32C ", got,
                   ", the manifest says ", place.crc32c, ". Remedy: use another checkpoint"));
}

absl::StatusOr<Tensor> CheckpointReader::Read(const std::string& name) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const WholeTensor* whole, Find(name));
  Tensor tensor(whole->dtype, whole->shape);
  LOCKSTEP_RETURN_IF_ERROR(ReadParts(*whole, 0, tensor.view()));
  return tensor;
}

absl::Status CheckpointReader::ReadInto(const std::string& name, MutableTensorView value) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const WholeTensor* whole, Find(name));
  LOCKSTEP_RETURN_IF_ERROR(CheckType(name, *whole, value.dtype, value.shape));
  return ReadParts(*whole, 0, value);
}

absl::Status CheckpointReader::ReadRows(const std::string& name, const Shape& whole_shape,
                                        int64_t first_row, MutableTensorView value) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const WholeTensor* whole, Find(name));
  LOCKSTEP_RETURN_IF_ERROR(CheckType(name, *whole, value.dtype, whole_shape));
  return ReadParts(*whole, first_row, value);
}

absl::Status CheckpointReader::ReadParts(const WholeTensor& whole, int64_t first_row,
                                         MutableTensorView value) const {
  const bool is_scalar = whole.shape.rank() == 0;
  const int64_t end_row = first_row + (is_scalar ? 1 : value.shape.dim(0));
  LOCKSTEP_CHECK(first_row >= 0 && end_row <= (is_scalar ? 1 : whole.shape.dim(0)));
  for (auto at = whole.PartWith(first_row); at != whole.parts.end(); ++at) {
    const TensorPart& part = *at;
    const int64_t begin = std::max(first_row, part.first_row);
    const int64_t end = std::min(end_row, part.first_row + part.num_rows);
    if (part.first_row >= end_row) break;
    if (begin >= end) continue;
    const Place& place = index_.at(part.name);
    const SafetensorsFile& file = files_[place.file];
    const SafetensorsEntry& entry = file.entries()[place.entry];
    const std::span<std::byte> to =
        is_scalar ? value.bytes() : RowRange(value, begin - first_row, end - begin).bytes();
    const uint64_t row_bytes = to.size() / static_cast<uint64_t>(end - begin);
    const uint64_t offset = static_cast<uint64_t>(begin - part.first_row) * row_bytes;
    const bool is_whole = end - begin == part.num_rows;
    const absl::StatusOr<uint32_t> crc =
        is_whole ? file.Read(entry, to) : file.ReadPart(entry, offset, to);
    LOCKSTEP_RETURN_IF_ERROR(crc.status());
    LOCKSTEP_RETURN_IF_ERROR(CheckCrc(place, *crc));
  }
  return absl::OkStatus();
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
