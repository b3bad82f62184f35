#include "common/checkpoint/safetensors_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checksum/crc32c.h"

namespace lockstep {

SafetensorsFile::SafetensorsFile(InputFile file, std::vector<SafetensorsEntry> entries,
                                 uint64_t data_begin)
    : file_(std::move(file)), entries_(std::move(entries)), data_begin_(data_begin) {}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  const auto wrong = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(path, ": not a safetensors file: ", what));
  };
  if (file.size() < kSafetensorsLengthBytes) {
    return wrong(
        absl::StrCat(file.size(), " bytes long, expected at least ", kSafetensorsLengthBytes));
  }
  uint64_t json_size = 0;
  LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(&json_size, 1))));
  if (json_size > kLargestSafetensorsHeader) {
    return wrong(absl::StrCat("header of ", json_size, " bytes, the format allows ",
                              kLargestSafetensorsHeader));
  }
  const uint64_t rest = file.size() - kSafetensorsLengthBytes;
  if (json_size > rest)
    return wrong(absl::StrCat("header of ", json_size, " bytes, the file has ", rest));
  std::string json(json_size, '\0');
  LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(
      kSafetensorsLengthBytes, std::as_writable_bytes(std::span(json.data(), json.size()))));
  auto entries = DecodeSafetensorsHeader(json, rest - json_size);
  if (!entries.ok()) return wrong(entries.status().message());
  return SafetensorsFile(std::move(file), *std::move(entries), kSafetensorsLengthBytes + json_size);
}

absl::StatusOr<uint32_t> SafetensorsFile::Read(const SafetensorsEntry& entry,
                                               std::span<std::byte> value) const {
  LOCKSTEP_CHECK(value.size() == entry.end - entry.begin);
  uint32_t crc = 0;
  uint64_t offset = data_begin_ + entry.begin;
  while (!value.empty()) {
    const auto piece = value.first(std::min(value.size(), kChecksumPiece));
    LOCKSTEP_RETURN_IF_ERROR(file_.ReadAt(offset, piece));
    crc = ExtendCrc32c(crc, piece);
    offset += piece.size();
    value = value.subspan(piece.size());
  }
  return crc;
}

absl::StatusOr<uint32_t> SafetensorsFile::ReadPart(const SafetensorsEntry& entry, uint64_t offset,
                                                   std::span<std::byte> value) const {
  const uint64_t size = entry.end - entry.begin;
  LOCKSTEP_CHECK(offset <= size && value.size() <= size - offset);
  const uint64_t end = offset + value.size();
  std::vector<std::byte> buffer(std::min<uint64_t>(size, kChecksumPiece));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < size;) {
    const auto piece = std::span(buffer).first(std::min<uint64_t>(size - at, buffer.size()));
    LOCKSTEP_RETURN_IF_ERROR(file_.ReadAt(data_begin_ + entry.begin + at, piece));
    crc = ExtendCrc32c(crc, piece);
    // What is wanted of this piece.
    const uint64_t from = std::max(at, offset);
    const uint64_t to = std::min(at + piece.size(), end);
    if (from < to) std::memcpy(value.data() + (from - offset), &piece[from - at], to - from);
    at += piece.size();
  }
  return crc;
}

absl::StatusOr<uint32_t> SafetensorsFile::Checksum(const SafetensorsEntry& entry) const {
  return ReadPart(entry, 0, {});
}

}  // namespace lockstep
