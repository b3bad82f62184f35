#include "common/checkpoint/safetensors_writer.h"

#include <algorithm>
#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors_header.h"
#include "common/checksum/crc32c.h"
#include "common/fs/atomic_file.h"
#include "common/fs/path.h"
#include "common/tensor/finite.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

// Position in the order of the format's own library, which sorts its dtypes from the last to the
// first.
int Rank(DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return 0;
    case DType::kFloat64:
      return 1;
    case DType::kFloat32:
      return 2;
    case DType::kInt32:
      return 3;
    case DType::kBFloat16:
      return 4;
    case DType::kFloat16:
      return 5;
    case DType::kUInt8:
      return 6;
  }
  LOCKSTEP_CHECK(false);
}

absl::Status CheckNames(const std::vector<const NamedTensor*>& sorted) {
  const std::string* before = nullptr;
  std::vector<const std::string*> names;
  for (const NamedTensor* tensor : sorted) names.push_back(&tensor->name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  for (const std::string* name : names) {
    const bool printable = std::all_of(name->begin(), name->end(), absl::ascii_isprint);
    if (!printable || name->empty() || name->size() > kLongestTensorName ||
        *name == kSafetensorsMetadata) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", absl::CEscape(name->substr(0, 80)), "' cannot name a tensor"));
    }
    if (before != nullptr && *before == *name)
      return absl::InvalidArgumentError(absl::StrCat("tensor '", *name, "' is given twice"));
    before = name;
  }
  return absl::OkStatus();
}

static_assert(kChecksumPiece % sizeof(double) == 0, "pieces are of whole elements");

// Notes in `record` what was written. `buffer` is for the pieces of tensors that are read.
absl::Status AppendTensor(AtomicFile& file, const NamedTensor& tensor,
                          std::vector<std::byte>* buffer, ShardFile* record) {
  const size_t num_bytes = tensor.value.num_bytes();
  uint32_t crc = 0;
  for (size_t done = 0; done < num_bytes; done += kChecksumPiece) {
    const size_t size = std::min(num_bytes - done, kChecksumPiece);
    std::span<const std::byte> piece;
    if (tensor.read == nullptr) {
      piece = tensor.value.bytes().subspan(done, size);
    } else {
      buffer->resize(std::max(buffer->size(), size));
      tensor.read(done, std::span(*buffer).first(size));
      piece = std::span(*buffer).first(size);
    }
    crc = ExtendCrc32c(crc, piece);
    record->is_finite = record->is_finite && AreFinite(tensor.value.dtype, piece);
    LOCKSTEP_RETURN_IF_ERROR(file.Append(piece));
  }
  record->tensors.push_back({tensor.name, tensor.value.dtype, tensor.value.shape, crc});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardFile> WriteSafetensors(const std::string& path,
                                           const std::vector<NamedTensor>& tensors,
                                           const PublishCheck& check) {
  std::vector<const NamedTensor*> sorted;
  for (const NamedTensor& tensor : tensors) sorted.push_back(&tensor);
  LOCKSTEP_RETURN_IF_ERROR(CheckNames(sorted));
  std::sort(sorted.begin(), sorted.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const int rank_a = Rank(a->value.dtype), rank_b = Rank(b->value.dtype);
    return rank_a != rank_b ? rank_a < rank_b : a->name < b->name;
  });

  std::vector<SafetensorsEntry> entries;
  uint64_t end = 0;
  for (const NamedTensor* tensor : sorted) {
    const uint64_t begin = end;
    end += tensor->value.num_bytes();
    entries.push_back({tensor->name, tensor->value.dtype, tensor->value.shape, begin, end});
  }
  const std::string json = EncodeSafetensorsHeader(entries);
  if (json.size() > kLargestSafetensorsHeader) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a header of ", json.size(),
                                                   " bytes, the format allows ",
                                                   kLargestSafetensorsHeader));
  }
  const uint64_t json_size = json.size();

  LOCKSTEP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LOCKSTEP_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(&json_size, 1))));
  LOCKSTEP_RETURN_IF_ERROR(file.Append(json));
  ShardFile record{NameOf(path), kSafetensorsLengthBytes + json_size + end, {}};
  std::vector<std::byte> buffer;
  for (const NamedTensor* tensor : sorted) {
    LOCKSTEP_RETURN_IF_ERROR(AppendTensor(file, *tensor, &buffer, &record));
  }
  LOCKSTEP_RETURN_IF_ERROR(file.Commit(check));
  return record;
}

}  // namespace lockstep
