#include "common/dataset/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/byte_source.h"
#include "common/dataset/memory_room.h"

namespace lockstep {
namespace {

constexpr int64_t kDefaultLength = 64;
constexpr float kDefaultHeldOut = 0.1f;
constexpr size_t kBlock = 1 << 16;

// The characters as numbers, and how they are cut.
struct Numbered {
  std::vector<std::byte> characters;
  std::string known;    // in the order of their numbers
  int64_t length = 0;   // of a sequence
  int64_t test_at = 0;  // where the test set begins

  // The last character of a split is a label only.
  int64_t SequencesIn(int64_t begin, int64_t end) const {
    return end > begin ? (end - begin - 1) / length : 0;
  }
  int64_t train() const { return SequencesIn(0, test_at); }
  int64_t test() const { return SequencesIn(test_at, static_cast<int64_t>(characters.size())); }
};

absl::StatusOr<std::vector<std::byte>> ReadBytes(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  std::vector<std::byte> bytes;
  size_t size = 0;
  while (true) {
    if (bytes.size() < size + kBlock) {
      const size_t room = std::max(2 * size, size + kBlock);
      LOCKSTEP_RETURN_IF_ERROR(CheckRoomForData(path, static_cast<int64_t>(room)));
      bytes.resize(room);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const size_t read,
                              source->Read(absl::MakeSpan(bytes).subspan(size, kBlock)));
    size += read;
    if (read < kBlock) break;
  }
  bytes.resize(size);
  return bytes;
}

// In ascending order.
std::string ThoseThatOccur(absl::Span<const std::byte> characters) {
  std::array<bool, 256> occurs{};
  for (const std::byte c : characters) occurs[static_cast<uint8_t>(c)] = true;
  std::string all;
  for (int c = 0; c < 256; ++c) {
    if (occurs[c]) all.push_back(static_cast<char>(c));
  }
  return all;
}

std::string Quoted(char c) { return absl::StrCat("\"", absl::CHexEscape({&c, 1}), "\""); }

// Replaces each character by its number among the known ones.
absl::Status Number(const std::string& path, absl::string_view known,
                    std::vector<std::byte>* characters) {
  constexpr int kUnknown = -1;
  std::array<int, 256> number;
  number.fill(kUnknown);
  for (size_t i = 0; i < known.size(); ++i) {
    int& own = number[static_cast<uint8_t>(known[i])];
    if (own != kUnknown) {
      return absl::InvalidArgumentError(
          absl::StrCat("data.text.characters: expected each character once, got ", Quoted(known[i]),
                       " again. Remedy: remove it."));
    }
    own = static_cast<int>(i);
  }
  for (size_t i = 0; i < characters->size(); ++i) {
    std::byte& c = (*characters)[i];
    const int own = number[static_cast<uint8_t>(c)];
    if (own == kUnknown) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": byte ", i, ": expected one of the ", known.size(),
          " characters that the model knows (data.text.characters), got ",
          Quoted(static_cast<char>(c)),
          ". Remedy: remove it from the text, or train a model that knows it; a new job names "
          "its characters itself where data.text.characters is left out."));
    }
    c = static_cast<std::byte>(own);
  }
  return absl::OkStatus();
}

absl::StatusOr<Numbered> Read(const TextFile& text) {
  Numbered numbered;
  numbered.length = text.length() == 0 ? kDefaultLength : text.length();
  if (numbered.length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.text.length: expected at least 1 character, got ", numbered.length,
                     ". Remedy: leave it out for ", kDefaultLength, "."));
  }
  const float held_out = text.has_held_out() ? text.held_out() : kDefaultHeldOut;
  if (!(held_out >= 0 && held_out < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.text.held_out: expected a number from 0 to below 1, got ", held_out,
                     ". Remedy: leave it out for ", kDefaultHeldOut, "."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(numbered.characters, ReadBytes(text.path()));
  numbered.known =
      text.characters().empty() ? ThoseThatOccur(numbered.characters) : text.characters();
  LOCKSTEP_RETURN_IF_ERROR(Number(text.path(), numbered.known, &numbered.characters));
  const int64_t size = static_cast<int64_t>(numbered.characters.size());
  numbered.test_at = size - static_cast<int64_t>(std::floor(static_cast<double>(size) * held_out));
  const bool has_train = numbered.train() > 0;
  if (has_train && (held_out == 0 || numbered.test() > 0)) return numbered;
  return absl::InvalidArgumentError(absl::StrCat(
      text.path(), ": data.text.length: expected at least one sequence of ", numbered.length,
      " characters and the one behind it to ", has_train ? "test" : "train", " with, got ",
      has_train ? size - numbered.test_at : numbered.test_at,
      " characters. Remedy: use shorter sequences, another data.text.held_out or a longer text."));
}

}  // namespace

absl::StatusOr<TextMeasure> MeasureText(const TextFile& text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Numbered numbered, Read(text));
  return TextMeasure{numbered.train(), numbered.test(), numbered.known, Shape({numbered.length})};
}

absl::StatusOr<ExampleTable> ReadText(const TextFile& text, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Numbered numbered, Read(text));
  const int64_t begin = split == Split::kTrain ? 0 : numbered.test_at;
  const int64_t count = split == Split::kTrain ? numbered.train() : numbered.test();
  if (count == 0) {
    return absl::InvalidArgumentError(
        "data.text.held_out: expected more than 0 to evaluate, got 0. Remedy: leave it out.");
  }
  const auto first = numbered.characters.begin() + begin;
  const int64_t size = count * numbered.length;
  ExampleTable table;
  table.features = {ElementType::kUInt8, Shape({numbered.length}), count, {first, first + size}};
  table.labels = {
      ElementType::kUInt8, Shape({numbered.length}), count, {first + 1, first + 1 + size}};
  table.files = {{text.path(), text.path(), 0}};
  return table;
}

}  // namespace lockstep
