#include "common/wire/message_splitter.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/segmented_reader.h"

namespace lockstep::wire {
namespace {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// The generated parser's limits.
constexpr int kMaxGroupDepth = 100;
constexpr uint64_t kMaxSize = std::numeric_limits<int32_t>::max() - 16;

void AppendVarint(uint64_t value, std::string* to) {
  while (value >= 0x80) {
    to->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  to->push_back(static_cast<char>(value));
}

absl::Status Malformed(const SegmentedReader& cursor, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor message: ", what, " at byte ", cursor.position()));
}

// At most `max_bytes` bytes; bits beyond the 64th are dropped.
absl::StatusOr<uint64_t> ReadVarint(SegmentedReader* cursor, int max_bytes = 10) {
  uint64_t value = 0;
  for (int i = 0; i < max_bytes; ++i) {
    std::byte byte;
    if (!cursor->ReadByte(&byte)) return Malformed(*cursor, "truncated number");
    const auto bits = static_cast<uint64_t>(byte);
    value |= (bits & 0x7f) << (7 * i);
    if (bits < 0x80) return value;
  }
  return Malformed(*cursor, "number too long");
}

struct Tag {
  uint32_t field;
  uint32_t type;
};

absl::StatusOr<Tag> ReadTag(SegmentedReader* cursor) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t number, ReadVarint(cursor, 5));
  const auto tag = static_cast<uint32_t>(number);  // as the generated parser does
  const Tag result{tag >> 3, tag & 7};
  if (result.field == 0) return Malformed(*cursor, "field number 0");
  return result;
}

absl::Status CopyBytes(SegmentedReader* cursor, uint64_t size, std::string* header) {
  if (!cursor->Copy(size, header)) return Malformed(*cursor, "truncated field");
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ReadSize(SegmentedReader* cursor) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, ReadVarint(cursor, 5));
  if (size > kMaxSize || size > cursor->remaining())
    return Malformed(*cursor, "field longer than the message");
  return size;
}

absl::Status CopyField(Tag tag, int depth, SegmentedReader* cursor, std::string* header);

absl::Status CopyGroup(uint32_t field, int depth, SegmentedReader* cursor, std::string* header) {
  if (depth > kMaxGroupDepth) return Malformed(*cursor, "groups nested too deep");
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tag tag, ReadTag(cursor));
    if (tag.type == kEndGroup && tag.field == field) {
      AppendVarint(uint64_t{field} << 3 | kEndGroup, header);
      return absl::OkStatus();
    }
    LOCKSTEP_RETURN_IF_ERROR(CopyField(tag, depth, cursor, header));
  }
}

absl::Status CopyField(Tag tag, int depth, SegmentedReader* cursor, std::string* header) {
  AppendVarint(uint64_t{tag.field} << 3 | tag.type, header);
  switch (tag.type) {
    case kVarint: {
      LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t value, ReadVarint(cursor));
      AppendVarint(value, header);
      return absl::OkStatus();
    }
    case kFixed64:
      return CopyBytes(cursor, 8, header);
    case kFixed32:
      return CopyBytes(cursor, 4, header);
    case kDelimited: {
      LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, ReadSize(cursor));
      AppendVarint(size, header);
      return CopyBytes(cursor, size, header);
    }
    case kStartGroup:
      return CopyGroup(tag.field, depth + 1, cursor, header);
    default:
      return Malformed(*cursor, absl::StrCat("unexpected wire type ", tag.type));
  }
}

}  // namespace

absl::StatusOr<SplitMessage> Split(std::span<const Bytes> pieces) {
  SplitMessage message;
  SegmentedReader cursor(pieces);
  while (cursor.remaining() > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tag tag, ReadTag(&cursor));
    if (tag.field != kPayloadField || tag.type != kDelimited) {
      LOCKSTEP_RETURN_IF_ERROR(CopyField(tag, 0, &cursor, &message.header));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(message.payload_bytes, ReadSize(&cursor));
    message.payload.clear();
    cursor.Share(message.payload_bytes, &message.payload);
  }
  return message;
}

std::string PayloadPrefix(uint64_t bytes) {
  std::string prefix;
  AppendVarint(uint64_t{kPayloadField} << 3 | kDelimited, &prefix);
  AppendVarint(bytes, &prefix);
  return prefix;
}

}  // namespace lockstep::wire
