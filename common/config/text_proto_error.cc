#include "common/config/text_proto_error.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// Of protobuf's message, which repeats what the user typed.
constexpr size_t kMaxLength = 300;

// The texts between pairs of double quotes.
std::vector<std::string> QuotedParts(const std::string& message) {
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  std::vector<std::string> quoted;
  for (size_t i = 1; i + 1 < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

// `root` and every message type that it holds, at any depth.
std::vector<const Descriptor*> TypesOf(const Descriptor& root) {
  std::vector<const Descriptor*> types = {&root};
  for (size_t next = 0; next < types.size(); ++next) {
    for (int i = 0; i < types[next]->field_count(); ++i) {
      const Descriptor* inner = types[next]->field(i)->message_type();
      if (inner != nullptr && !absl::c_linear_search(types, inner)) types.push_back(inner);
    }
  }
  return types;
}

std::string UnknownField(const std::vector<const Descriptor*>& types, const std::string& type_name,
                         const std::string& field) {
  for (const Descriptor* type : types) {
    if (type->full_name() != type_name) continue;
    std::vector<std::string> known;
    for (int i = 0; i < type->field_count(); ++i) known.push_back(type->field(i)->name());
    return absl::StrCat(
        "unknown field \"", field, "\" in ", type->name(), ". Remedy: ",
        known.empty()
            ? "leave it empty: {}"
            : absl::StrCat("use one of ", absl::StrJoin(NearestFirst(field, known), ", ")));
  }
  return "";
}

std::string UnknownValue(const std::vector<const Descriptor*>& types, const std::string& value,
                         const std::string& field_name) {
  for (const Descriptor* type : types) {
    const FieldDescriptor* field = type->FindFieldByName(field_name);
    if (field == nullptr || field->enum_type() == nullptr) continue;
    const EnumDescriptor* values = field->enum_type();
    std::vector<std::string> known;
    for (int i = 0; i < values->value_count(); ++i) known.push_back(values->value(i)->name());
    return absl::StrCat(field_name, ": unknown value \"", value, "\". Remedy: use one of ",
                        absl::StrJoin(NearestFirst(value, known), ", "));
  }
  return "";
}

TextProtoMistake Explain(const Descriptor& root, const std::string& message) {
  const std::vector<const Descriptor*> types = TypesOf(root);
  const std::vector<std::string> quoted = QuotedParts(message);
  TextProtoMistake mistake;
  if (absl::StrContains(message, "has no field named") && quoted.size() >= 2) {
    mistake = {UnknownField(types, quoted[0], quoted[1]), quoted[1]};
  } else if (absl::StartsWith(message, "Unknown enumeration value of") && quoted.size() >= 2) {
    mistake = {UnknownValue(types, quoted[0], quoted[1]), quoted[0]};
  } else if (absl::StartsWith(message, "Non-repeated field") && !quoted.empty()) {
    mistake = {absl::StrCat(quoted[0], ": it is given twice. Remedy: write it once"), quoted[0]};
  } else if (absl::StrContains(message, "is specified along with field") && quoted.size() >= 2) {
    mistake = {absl::StrCat(quoted[0], ": it excludes ", quoted[1],
                            ", which is given too. Remedy: keep one of the two"),
               quoted[0]};
  }
  if (!mistake.text.empty()) return mistake;
  return {absl::StrCat(absl::StripSuffix(message, "."),
                       ". Remedy: correct the text here; a field is written name: value or ",
                       "name { ... }"),
          ""};
}

}  // namespace

TextProtoMistake ExplainTextProtoError(const Descriptor& root, const std::string& message) {
  TextProtoMistake mistake = Explain(root, message.substr(0, kMaxLength));
  for (char& c : mistake.text) {
    if (absl::ascii_iscntrl(c)) c = ' ';
  }
  return mistake;
}

}  // namespace lockstep
