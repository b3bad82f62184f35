#include "common/dataset/idx.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/dataset/byte_source.h"
#include "common/dataset/memory_room.h"

namespace lockstep {
namespace {

constexpr int64_t kMagicSize = 4;
constexpr int64_t kExtentSize = 4;
// Memory is touched as the bytes come, never at once for what a header claims.
constexpr int64_t kPiece = int64_t{1} << 26;

struct Layout {
  IdxHeader header;
  int64_t header_bytes = 0;
  int64_t data_bytes = 0;
};

std::optional<ElementType> TypeOfCode(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return ElementType::kUInt8;
    case 0x09:
      return ElementType::kInt8;
    case 0x0b:
      return ElementType::kInt16;
    case 0x0c:
      return ElementType::kInt32;
    case 0x0d:
      return ElementType::kFloat32;
    case 0x0e:
      return ElementType::kFloat64;
    default:
      return std::nullopt;
  }
}

template <typename... Parts>
absl::Status Corrupt(const ByteSource& source, int64_t offset, const Parts&... parts) {
  return absl::DataLossError(
      absl::StrCat(source.path(), ": byte ", offset,
                   source.compressed() ? " (of the uncompressed data): " : ": ", parts...,
                   ". Remedy: get the file again, or write it as an IDX file."));
}

absl::StatusOr<ElementType> ReadMagic(ByteSource& source, int* dimensions) {
  std::byte magic[kMagicSize];
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, source.Read(absl::MakeSpan(magic)));
  if (got < kMagicSize) {
    return Corrupt(source, got, "expected an IDX header of at least 8 bytes, got ",
                   got == 0 ? "an empty file" : "the end of the file");
  }
  const auto type = TypeOfCode(magic[2]);
  *dimensions = std::to_integer<int>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !type || *dimensions == 0) {
    const auto hex = [](std::string* out, std::byte byte) {
      absl::StrAppend(out, absl::Hex(std::to_integer<int>(byte), absl::kZeroPad2));
    };
    return Corrupt(source, 0,
                   "expected an IDX magic number (00 00, an element type of 08 09 0b 0c 0d 0e, the "
                   "number of dimensions), got ",
                   absl::StrJoin(magic, " ", hex));
  }
  if (*dimensions - 1 > Shape::kMaxRank) {
    return Corrupt(source, 3, "expected at most ", Shape::kMaxRank + 1, " dimensions, got ",
                   *dimensions);
  }
  return *type;
}

absl::StatusOr<Layout> ReadLayout(ByteSource& source) {
  int dimensions = 0;
  Layout layout;
  LOCKSTEP_ASSIGN_OR_RETURN(layout.header.type, ReadMagic(source, &dimensions));
  layout.header_bytes = kMagicSize + dimensions * kExtentSize;
  std::vector<std::byte> bytes(dimensions * kExtentSize);
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, source.Read(absl::MakeSpan(bytes)));
  if (got < bytes.size()) {
    return Corrupt(source, source.offset(), "expected a header of ", layout.header_bytes,
                   " bytes for ", dimensions, " dimensions, got the end of the file");
  }
  std::vector<int64_t> extents(dimensions, 0);
  for (int axis = 0; axis < dimensions; ++axis) {
    for (int i = 0; i < kExtentSize; ++i) {
      extents[axis] = extents[axis] << 8 | std::to_integer<int64_t>(bytes[axis * kExtentSize + i]);
    }
  }
  const std::string product = absl::StrJoin(extents, " x ");
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) {
    return Corrupt(source, kMagicSize, "expected at least one element, got extents ", product);
  }
  std::optional<int64_t> size = SizeOf(layout.header.type);
  for (int64_t extent : extents) {
    if (size) size = CheckedMultiply(*size, extent);
  }
  if (!size || !CheckedAdd(*size, layout.header_bytes)) {
    return Corrupt(source, kMagicSize, "expected extents whose product a file can have, got ",
                   product);
  }
  layout.data_bytes = *size;
  layout.header.count = extents[0];
  // A shape counts its bytes in the widest type, whatever the file's is.
  absl::StatusOr<Shape> shape = Shape::Create(absl::MakeConstSpan(extents).subspan(1));
  if (!shape.ok()) {
    return Corrupt(source, kMagicSize, "expected extents whose product a file can have, got ",
                   product);
  }
  layout.header.shape = *std::move(shape);
  return layout;
}

std::string Describe(const Layout& layout) {
  return absl::StrCat(layout.header_bytes + layout.data_bytes, " bytes (", layout.header.count,
                      " records of shape ", layout.header.shape.ToString(), " ",
                      Name(layout.header.type), ")");
}

absl::Status Truncated(const ByteSource& source, const Layout& layout, int64_t size) {
  return Corrupt(source, size, "expected ", Describe(layout), ", got the end of the file");
}

absl::Status Trailing(const ByteSource& source, const Layout& layout) {
  return Corrupt(source, layout.header_bytes + layout.data_bytes,
                 "expected the end of the file after ", Describe(layout), ", got more bytes");
}

absl::Status CheckSize(const ByteSource& source, const Layout& layout) {
  const int64_t size = source.stored_size();
  const int64_t expected = layout.header_bytes + layout.data_bytes;
  if (source.compressed()) {
    if (expected <= source.max_size()) return absl::OkStatus();
    return Corrupt(source, kMagicSize, "expected at most ", source.max_size(), " bytes from ", size,
                   " compressed ones, got a header of ", Describe(layout),
                   "; if the file is sound, decompress it (gunzip) and name what comes out");
  }
  if (size < expected) return Truncated(source, layout, size);
  if (size > expected) return Trailing(source, layout);
  return absl::OkStatus();
}

absl::Status ReadElements(ByteSource& source, const Layout& layout, std::vector<std::byte>* bytes) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRoomForData(source.path(), layout.data_bytes));
  bytes->reserve(layout.data_bytes);
  int64_t filled = 0;
  while (filled < layout.data_bytes) {
    const int64_t target = filled + std::min(kPiece, layout.data_bytes - filled);
    bytes->resize(target);
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t got,
                              source.Read(absl::MakeSpan(*bytes).subspan(filled)));
    filled += static_cast<int64_t>(got);
    if (filled < target) return Truncated(source, layout, layout.header_bytes + filled);
  }
  std::byte more[1];
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t got, source.Read(absl::MakeSpan(more)));
  return got == 0 ? absl::OkStatus() : Trailing(source, layout);
}

void ToNativeOrder(size_t element_size, std::vector<std::byte>* bytes) {
  if constexpr (std::endian::native == std::endian::big) return;
  if (element_size == 1) return;
  for (auto at = bytes->begin(); at != bytes->end(); at += element_size) {
    std::reverse(at, at + element_size);
  }
}

absl::Status CheckFinite(const ByteSource& source, const Layout& layout, const Records& records) {
  return VisitElements(records, [&]<typename T>(absl::Span<const T> elements) -> absl::Status {
    if constexpr (std::is_floating_point_v<T>) {
      const auto sound = [](T x) { return std::abs(x) <= std::numeric_limits<float>::max(); };
      const auto bad = std::find_if_not(elements.begin(), elements.end(), sound);
      if (bad != elements.end()) {
        const int64_t index = bad - elements.begin();
        return Corrupt(source, layout.header_bytes + index * static_cast<int64_t>(sizeof(T)),
                       "expected a finite float32, got ", *bad, " in record ",
                       index / records.shape.num_elements());
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<IdxHeader> ReadIdxHeader(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto source, ByteSource::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(*source));
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(*source, layout));
  return layout.header;
}

absl::StatusOr<Records> ReadIdx(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto source, ByteSource::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(*source));
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(*source, layout));
  Records records;
  records.type = layout.header.type;
  records.shape = layout.header.shape;
  records.count = layout.header.count;
  LOCKSTEP_RETURN_IF_ERROR(ReadElements(*source, layout, &records.bytes));
  ToNativeOrder(SizeOf(records.type), &records.bytes);
  LOCKSTEP_RETURN_IF_ERROR(CheckFinite(*source, layout, records));
  return records;
}

}  // namespace lockstep
