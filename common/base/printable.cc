#include "common/base/printable.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace lockstep {
namespace {

// Bytes of the UTF-8 character at the start of `text`; 0 if there is none. Overlong forms and
// surrogates count as none, as do the C1 control characters U+0080 to U+009F.
size_t CharacterSize(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const uint8_t second = byte(1);
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_surrogate = first == 0xED && second >= 0xA0;
  const bool is_beyond_unicode = first == 0xF4 && second >= 0x90;
  const bool is_control = first == 0xC2 && second < 0xA0;
  return is_overlong || is_surrogate || is_beyond_unicode || is_control ? 0 : size;
}

void AppendEscaped(uint8_t byte, std::string* line) {
  switch (byte) {
    case '\n':
      return void(line->append("\\n"));
    case '\r':
      return void(line->append("\\r"));
    case '\t':
      return void(line->append("\\t"));
    default:
      absl::StrAppendFormat(line, "\\x%02x", byte);
  }
}

}  // namespace

std::string Printable(absl::string_view text, size_t max_bytes) {
  std::string line;
  line.reserve(std::min(text.size(), max_bytes) + 3);
  size_t used = 0;
  while (!text.empty()) {
    const size_t character = CharacterSize(text);
    const size_t size = std::max<size_t>(character, 1);
    if (used + size > max_bytes) {
      line.append("...");
      break;
    }
    if (character > 0) {
      line.append(text.data(), size);
    } else {
      AppendEscaped(static_cast<uint8_t>(text[0]), &line);
    }
    used += size;
    text.remove_prefix(size);
  }
  return line;
}

}  // namespace lockstep
