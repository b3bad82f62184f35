#include "common/client/known_enums.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status CheckValue(const EnumDescriptor& type, int value, const std::string& path) {
  if (type.FindValueByNumber(value) != nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", value, " is none of ", absl::StrJoin(names, ", ")));
}

absl::Status CheckMessage(const Message& message, const std::string& prefix);

// `index`: of an element of a repeated field, otherwise -1.
absl::Status CheckField(const Message& message, const FieldDescriptor& field, int index,
                        const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return CheckMessage(index < 0 ? reflection.GetMessage(message, &field)
                                  : reflection.GetRepeatedMessage(message, &field, index),
                        path + ".");
  }
  return CheckValue(*field.enum_type(),
                    index < 0 ? reflection.GetEnumValue(message, &field)
                              : reflection.GetRepeatedEnumValue(message, &field, index),
                    path);
}

absl::Status CheckMessage(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
        field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
      continue;
    }
    const std::string path = prefix + field->name();
    if (!field->is_repeated()) {
      LOCKSTEP_RETURN_IF_ERROR(CheckField(message, *field, -1, path));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(CheckField(message, *field, i, absl::StrCat(path, "[", i, "]")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckEnums(const Message& message) { return CheckMessage(message, ""); }

}  // namespace lockstep
