#include "common/config/text_proto_error.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"
#include "common/config/job_rules.h"
#include "common/config/unknown_field.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using Types = std::vector<const Descriptor*>;

// Of protobuf's message, which repeats what the user typed.
constexpr size_t kMaxLength = 300;

// The texts between pairs of double quotes.
std::vector<std::string> QuotedParts(const std::string& message) {
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  std::vector<std::string> quoted;
  for (size_t i = 1; i + 1 < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

std::string WithRemedy(absl::string_view problem, absl::string_view remedy) {
  return absl::StrCat(problem, ". Remedy: ", remedy);
}

bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The name that `before` ends with, before a colon or not; that of a list whose "[" is open.
std::string FieldBefore(absl::string_view before) {
  const size_t list = before.rfind('[');
  if (list != absl::string_view::npos && !absl::StrContains(before.substr(list), ']')) {
    before = before.substr(0, list);
  }
  before = absl::StripTrailingAsciiWhitespace(before);
  absl::ConsumeSuffix(&before, ":");
  before = absl::StripTrailingAsciiWhitespace(before);
  size_t begin = before.size();
  while (begin > 0 && IsNamePart(before[begin - 1])) --begin;
  return std::string(before.substr(begin));
}

// How the field is written: "max_steps: 100", "name: \"text\"", "sync { ... }".
std::string Written(const FieldDescriptor& field) {
  const std::string& name = field.name();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat(name, " { ... }");
    case FieldDescriptor::CPPTYPE_STRING:
      return absl::StrCat(name, ": \"text\"");
    case FieldDescriptor::CPPTYPE_BOOL:
      return absl::StrCat(name, ": true");
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat(name, ": ", field.enum_type()->value(0)->name());
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(name, ": 0.5");
    default:
      return absl::StrCat(name, field.is_repeated() ? ": [3, 3]" : ": 100");
  }
}

// `block`, of a message type, in place of the one value `found`: with that value where it is clear
// whose it is.
std::string BlockAround(const FieldDescriptor& block, const std::string& found) {
  const Descriptor& type = *block.message_type();
  if (const FieldDescriptor* inner = type.FindFieldByName(found)) {
    const bool empty = inner->message_type() != nullptr;
    if (empty) return absl::StrCat(block.name(), " { ", found, " { ... } }");
  }
  const bool number = !found.empty() && (absl::ascii_isdigit(found[0]) || found[0] == '.');
  if (number && type.field_count() > 0) {
    const FieldDescriptor& first = *type.field(0);
    const bool fits = first.cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
                      first.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
    if (fits) return absl::StrCat(block.name(), " { ", first.name(), ": ", found, " }");
  }
  return Written(block);
}

std::string UnknownField(const Types& types, const std::string& type_name,
                         const std::string& field) {
  for (const Descriptor* type : types) {
    if (type->full_name() == type_name) return DescribeUnknownField(types, *type, field);
  }
  return "";
}

// Those that a job may name: not every type of tensors travels between hosts.
std::vector<std::string> ValuesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  if (&type == DataType_descriptor()) {
    for (const DataType wire : kWireTypes) names.push_back(DataType_Name(wire));
    return names;
  }
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return names;
}

std::string UnknownValue(const Types& types, const std::string& value,
                         const std::string& field_name) {
  for (const Descriptor* type : types) {
    const FieldDescriptor* field = type->FindFieldByName(field_name);
    if (field == nullptr || field->enum_type() == nullptr) continue;
    const std::vector<std::string> known = ValuesOf(*field->enum_type());
    const std::string nearest = Nearest(value, known);
    return absl::StrCat(field_name, ": unknown value \"", value, "\"",
                        nearest.empty() ? "." : absl::StrCat("; did you mean ", nearest, "?"),
                        " Remedy: use one of ", absl::StrJoin(NearestFirst(value, known), ", "));
  }
  return "";
}

// Whether the name stands right behind a quote: a text whose quote is missing ends at the next one.
bool TouchesQuote(const std::string& name, absl::string_view before) {
  const size_t at = before.rfind(name);
  return !name.empty() && at != absl::string_view::npos && at > 0 &&
         (before[at - 1] == '"' || before[at - 1] == '\'');
}

std::string MissingQuote(const std::string& name) {
  return WithRemedy(absl::StrCat("expected a field, got \"", name, "\" behind a quote"),
                    "close the text before it; is a quote missing on this line?");
}

// "Expected "{", found "0.002".": a block or a value, written as the other.
std::string WrongForm(const Types& types, const std::string& expected, const std::string& found,
                      absl::string_view before) {
  const std::string name = FieldBefore(before);
  if (TouchesQuote(name, before)) return MissingQuote(name);
  const FieldDescriptor* field = FindField(types, name);
  const bool wants_block = expected == "{";
  // A bracket in a text before the block leads to another field.
  if (field != nullptr && wants_block && field->message_type() == nullptr) field = nullptr;
  const std::string got = found.empty() ? "the end of the text" : absl::StrCat("\"", found, "\"");
  if (field == nullptr) {
    return WithRemedy(absl::StrCat("expected \"", expected, "\", got ", got),
                      found.empty() ? "close each { and [ of the file"
                                    : "a field is written name: value or name { ... }");
  }
  return WithRemedy(
      absl::StrCat(field->name(), ": expected \"", expected, "\", got ", got),
      absl::StrCat("write ", wants_block ? BlockAround(*field, found) : Written(*field)));
}

// "Expected integer, got: ten".
std::string WrongValue(const Types& types, absl::string_view kind, absl::string_view got,
                       absl::string_view before) {
  const FieldDescriptor* field = FindField(types, FieldBefore(before));
  std::string expected = kind == "integer"  ? "a whole number"
                         : kind == "double" ? "a number"
                         : kind == "string" ? "a text in quotes"
                                            : "one of its values, without quotes";
  std::string remedy = "correct the value";
  if (field != nullptr) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) expected += " from 0 on";
    remedy = absl::StrCat("write it like ", Written(*field));
  }
  return WithRemedy(
      absl::StrCat(field == nullptr ? "" : absl::StrCat(field->name(), ": "), "expected ", expected,
                   ", got ", got.empty() ? "the end of the text" : absl::StrCat("\"", got, "\"")),
      remedy);
}

// What stands where the name of a field should.
std::string NoName(absl::string_view got, absl::string_view before) {
  before = absl::StripTrailingAsciiWhitespace(before);
  if (got.empty()) {
    return WithRemedy("the text ends inside a block", "close each { with a }; is one missing?");
  }
  if (got == "}") {
    return WithRemedy("there is no { for this }", "remove it, or add the { that is missing above");
  }
  if (got == "/") return WithRemedy("expected a field, got \"/\"", "begin comments with #");
  if (got == "{") {
    return WithRemedy("expected a field, got \"{\"",
                      "leave the outermost braces out: this is a text proto, not JSON");
  }
  if (got[0] == '"' || got[0] == '\'') {
    return WithRemedy(absl::StrCat("expected a field, got ", got),
                      "write the names of fields without quotes");
  }
  const bool number = absl::ascii_isdigit(got[0]);
  if (number && absl::ConsumeSuffix(&before, ",") && !before.empty() &&
      absl::ascii_isdigit(before.back())) {
    return WithRemedy(absl::StrCat("expected a field, got \"", got, "\""),
                      "write decimals with a point (1.5), and several numbers as [1, 5]");
  }
  return WithRemedy(absl::StrCat("expected a field, got \"", got, "\""),
                    "a field is written name: value or name { ... }");
}

TextProtoMistake Explain(const Descriptor& root, const std::string& message,
                         absl::string_view before) {
  const Types types = TypesOf(root);
  const std::vector<std::string> quoted = QuotedParts(message);
  absl::string_view rest = message;
  if (absl::StrContains(message, "has no field named") && quoted.size() >= 2) {
    if (TouchesQuote(quoted[1], before)) {
      return {MissingQuote(quoted[1]), quoted[1]};
    }
    return {UnknownField(types, quoted[0], quoted[1]), quoted[1]};
  }
  if (absl::StartsWith(message, "Unknown enumeration value of") && quoted.size() >= 2) {
    return {UnknownValue(types, quoted[0], quoted[1]), quoted[0]};
  }
  if (absl::StartsWith(message, "Non-repeated field") && !quoted.empty()) {
    return {WithRemedy(absl::StrCat(quoted[0], ": it is given twice"), "write it once"), quoted[0]};
  }
  if (absl::StrContains(message, "is specified along with field") && quoted.size() >= 2) {
    return {WithRemedy(absl::StrCat(quoted[0], ": it excludes ", quoted[1], ", which is given too"),
                       "keep one of the two"),
            quoted[0]};
  }
  if (absl::StartsWith(message, "Invalid value for boolean field") && quoted.size() >= 2) {
    return {WithRemedy(absl::StrCat(quoted[0], ": expected true or false, got \"", quoted[1], "\""),
                       absl::StrCat("write ", quoted[0], ": true or leave it out")),
            quoted[1]};
  }
  if (absl::ConsumePrefix(&rest, "Integer out of range (")) {
    absl::ConsumeSuffix(&rest, ")");
    const std::string field = FieldBefore(before);
    return {WithRemedy(absl::StrCat(field, field.empty() ? "" : ": ",
                                    "expected a number of 64 bits, got ", rest),
                       "use a smaller number"),
            ""};
  }
  if (absl::ConsumePrefix(&rest, "Expected identifier, got: ")) return {NoName(rest, before), ""};
  if (const size_t got = message.find(", got: ");
      got != std::string::npos && absl::ConsumePrefix(&rest, "Expected ")) {
    return {WrongValue(types, rest.substr(0, rest.find(", got: ")),
                       absl::string_view(message).substr(got + 7), before),
            ""};
  }
  if (absl::StartsWith(message, "Expected \"") && quoted.size() >= 2) {
    return {WrongForm(types, quoted[0], quoted[1], before), ""};
  }
  if (absl::StartsWith(message, "Unexpected end of string") ||
      absl::StartsWith(message, "String literals cannot cross line boundaries")) {
    return {WithRemedy("a text in quotes does not end on its line", "add the quote at its end"),
            ""};
  }
  return {};
}

}  // namespace

TextProtoMistake ExplainTextProtoError(const Descriptor& root, const std::string& message,
                                       absl::string_view before) {
  const std::string start = message.substr(0, kMaxLength);
  TextProtoMistake mistake = Explain(root, start, before);
  if (mistake.text.empty()) {
    mistake = {WithRemedy(absl::StripSuffix(start, "."),
                          "correct the text here; a field is written name: value or name { ... }"),
               ""};
  }
  for (char& c : mistake.text) {
    if (absl::ascii_iscntrl(c)) c = ' ';
  }
  return mistake;
}

}  // namespace lockstep
