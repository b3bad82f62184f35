#include "common/wire/message_splitter.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

uint32_t FieldOf(uint32_t tag) { return tag >> 3; }
uint32_t TypeOf(uint32_t tag) { return tag & 7; }

// Reads the fields of a message one by one. A call that returns false has set the status.
class FieldReader {
 public:
  explicit FieldReader(std::span<const Bytes> pieces) : cursor_(pieces) {}

  const SegmentedReader& cursor() const { return cursor_; }
  const absl::Status& status() const { return status_; }

  bool ReadTag(uint32_t* tag) {
    uint64_t number = 0;
    if (!ReadVarint(5, &number)) return false;
    *tag = static_cast<uint32_t>(number);  // as the generated parser does
    return FieldOf(*tag) != 0 || Fail("field number 0");
  }
  bool ReadSize(uint64_t* size) {
    if (!ReadVarint(5, size)) return false;
    const bool fits = *size <= kMaxSize && *size <= cursor_.remaining();
    return fits || Fail("field longer than the message");
  }
  // What follows this tag, in `depth` groups.
  bool SkipField(uint32_t tag, int depth);
  void Share(uint64_t size, std::vector<Bytes>* to) { cursor_.Share(size, to); }

 private:
  bool Fail(absl::string_view what);
  bool ReadVarint(int max_bytes, uint64_t* value) {
    std::byte byte;
    if (!cursor_.ReadByte(&byte)) return Fail("truncated number");
    *value = static_cast<uint64_t>(byte);
    return *value < 0x80 || ReadRest(max_bytes, value);
  }
  // Of a number of at most `max_bytes` bytes whose first one `value` is; bits beyond the 64th are
  // dropped.
  bool ReadRest(int max_bytes, uint64_t* value);
  bool Skip(uint64_t size) { return cursor_.Skip(size) || Fail("truncated field"); }
  bool SkipGroup(uint32_t field, int depth);

  SegmentedReader cursor_;
  absl::Status status_;
};

bool FieldReader::Fail(absl::string_view what) {
  status_ = absl::InvalidArgumentError(
      absl::StrCat("tensor message: ", what, " at byte ", cursor_.position()));
  return false;
}

bool FieldReader::ReadRest(int max_bytes, uint64_t* value) {
  *value &= 0x7f;
  for (int i = 1; i < max_bytes; ++i) {
    std::byte byte;
    if (!cursor_.ReadByte(&byte)) return Fail("truncated number");
    const auto bits = static_cast<uint64_t>(byte);
    *value |= (bits & 0x7f) << (7 * i);
    if (bits < 0x80) return true;
  }
  return Fail("number too long");
}

bool FieldReader::SkipGroup(uint32_t field, int depth) {
  if (depth > kMaxGroupDepth) return Fail("groups nested too deep");
  uint32_t tag = 0;
  while (ReadTag(&tag)) {
    if (TypeOf(tag) == kEndGroup && FieldOf(tag) == field) return true;
    if (!SkipField(tag, depth)) return false;
  }
  return false;
}

bool FieldReader::SkipField(uint32_t tag, int depth) {
  uint64_t value = 0;
  switch (TypeOf(tag)) {
    case kVarint:
      return ReadVarint(10, &value);
    case kFixed64:
      return Skip(8);
    case kFixed32:
      return Skip(4);
    case kDelimited:
      return ReadSize(&value) && Skip(value);
    case kStartGroup:
      return SkipGroup(FieldOf(tag), depth + 1);
    default:
      return Fail(absl::StrCat("unexpected wire type ", TypeOf(tag)));
  }
}

}  // namespace

absl::StatusOr<SplitMessage> Split(std::span<const Bytes> pieces) {
  SplitMessage message;
  FieldReader fields(pieces);
  SegmentedReader not_copied(pieces);  // the fields between two payloads are copied together
  while (fields.cursor().remaining() > 0) {
    const uint64_t begin = fields.cursor().position();
    uint32_t tag = 0;
    if (!fields.ReadTag(&tag)) return fields.status();
    if (FieldOf(tag) != kPayloadField || TypeOf(tag) != kDelimited) {
      if (!fields.SkipField(tag, 0)) return fields.status();
      continue;
    }
    if (!fields.ReadSize(&message.payload_bytes)) return fields.status();
    not_copied.Copy(begin - not_copied.position(), &message.header);
    message.payload.clear();
    fields.Share(message.payload_bytes, &message.payload);
    not_copied = fields.cursor();
  }
  not_copied.Copy(not_copied.remaining(), &message.header);
  return message;
}

std::string PayloadPrefix(uint64_t bytes) {
  std::string prefix;
  AppendVarint(uint64_t{kPayloadField} << 3 | kDelimited, &prefix);
  AppendVarint(bytes, &prefix);
  return prefix;
}

}  // namespace lockstep::wire
