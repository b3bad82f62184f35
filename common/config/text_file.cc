#include "common/config/text_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/remedy.h"
#include "common/fs/input_file.h"

namespace lockstep {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr absl::string_view kRemedy = "name a text file that exists and that this user may read";
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Length of the UTF-8 sequence at the front of `text`; 0 when it is none (a stray or missing
// continuation byte, an overlong form, a surrogate, beyond U+10FFFF) or a NUL.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  return length;
}

std::optional<size_t> FirstBadByte(absl::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = SequenceLength(text.substr(offset));
    if (length == 0) return offset;
    offset += length;
  }
  return std::nullopt;
}

}  // namespace

bool IsUtf8(absl::string_view text) { return !FirstBadByte(text).has_value(); }

std::string LineAndColumn(absl::string_view text, size_t offset) {
  const absl::string_view before = text.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const size_t column =
      newline == absl::string_view::npos ? before.size() : before.size() - newline - 1;
  return absl::StrCat(1 + std::count(before.begin(), before.end(), '\n'), ":", column + 1);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  absl::StatusOr<std::string> read = ReadFile(path, kMaxBytes);
  if (!read.ok()) return AddRemedy(read.status(), kRemedy);
  std::string text = *std::move(read);
  if (absl::StartsWith(text, kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  if (const auto offset = FirstBadByte(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", LineAndColumn(text, *offset), ": expected UTF-8 text, got byte ",
                     static_cast<int>(static_cast<uint8_t>(text[*offset])), " at offset ", *offset,
                     ". Remedy: give the text file, saved as UTF-8"));
  }
  return text;
}

}  // namespace lockstep
