#include "common/config/text_proto.h"

#include <optional>

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

// The tokenizer lets a tab stand for up to eight columns; editors and compilers count bytes.
int ByteColumn(const std::string& text, int line, int tokenizer_column) {
  constexpr int kTabStop = 8;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (line < 0 || static_cast<size_t>(line) >= lines.size()) return tokenizer_column;
  int wide = 0;
  int column = 0;
  for (char c : lines[line]) {
    if (wide >= tokenizer_column) break;
    wide += c == '\t' ? kTabStop - wide % kTabStop : 1;
    ++column;
  }
  return column;
}

}  // namespace

absl::Status ParseTextProto(absl::string_view source, const std::string& text,
                            google::protobuf::Message* message) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (parser.ParseFromString(text, message)) return absl::OkStatus();
  const FirstError::Mistake mistake =
      errors.mistake.value_or(FirstError::Mistake{0, 0, "not a text proto"});
  const int line = std::max(0, mistake.line);
  const int column = ByteColumn(text, line, std::max(0, mistake.column));
  return absl::InvalidArgumentError(
      absl::StrCat(source, ":", line + 1, ":", column + 1, ": ",
                   ExplainTextProtoError(*message->GetDescriptor(), mistake.message)));
}

absl::Status ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParseTextProto(path, text, message);
}

}  // namespace lockstep
