#include "common/config/text_proto.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/config/text_file.h"
#include "common/config/text_proto_error.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace lockstep {
namespace {

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  struct Mistake {
    int line = 0;  // both from 0
    int column = 0;
    std::string message;
  };

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!mistake.has_value()) mistake = Mistake{line, column, message};
  }

  std::optional<Mistake> mistake;
};

// The byte of the line at the tokenizer's column: it counts from 0 and lets a tab stand for up to
// eight columns.
size_t ByteAt(absl::string_view line_text, int column) {
  constexpr int kTabStop = 8;
  int wide = 0;
  size_t byte = 0;
  while (byte < line_text.size() && wide < column) {
    wide += line_text[byte] == '\t' ? kTabStop - wide % kTabStop : 1;
    ++byte;
  }
  return byte;
}

// "3:14": line and column in bytes, counted from 1. The tokenizer stands behind a name when it
// finds that the name is wrong; users look for the name.
std::string PlaceOf(absl::string_view line_text, int line, size_t column,
                    const std::string& culprit) {
  if (!culprit.empty()) {
    const size_t begin = line_text.substr(0, column + culprit.size()).rfind(culprit);
    if (begin != absl::string_view::npos) column = begin;
  }
  return absl::StrCat(line + 1, ":", column + 1);
}

}  // namespace

absl::Status ParseTextProto(absl::string_view source, const std::string& text,
                            google::protobuf::Message* message) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (parser.ParseFromString(text, message)) return absl::OkStatus();
  FirstError::Mistake mistake =
      errors.mistake.value_or(FirstError::Mistake{0, 0, "it is no text proto"});
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  mistake.line = std::clamp<int>(mistake.line, 0, static_cast<int>(lines.size()) - 1);
  const absl::string_view line = lines[mistake.line];
  const size_t column = ByteAt(line, mistake.column);
  const TextProtoMistake told =
      ExplainTextProtoError(*message->GetDescriptor(), mistake.message, line.substr(0, column));
  return absl::InvalidArgumentError(absl::StrCat(
      source, ":", PlaceOf(line, mistake.line, column, told.culprit), ": ", told.text));
}

absl::Status ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParseTextProto(path, text, message);
}

}  // namespace lockstep
