#include "deploy/cli/status_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace lockstep::deploy {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using OrderedJson = nlohmann::ordered_json;

OrderedJson ToJson(const Message& message);

OrderedJson Finite(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

OrderedJson Single(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Finite(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Finite(reflection->GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection->GetMessage(message, field));
  }
  return nullptr;
}

OrderedJson Element(const Message& message, const FieldDescriptor* field, int i) {
  const Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetRepeatedInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetRepeatedInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetRepeatedUInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetRepeatedUInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Finite(reflection->GetRepeatedDouble(message, field, i));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Finite(reflection->GetRepeatedFloat(message, field, i));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetRepeatedBool(message, field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection->GetRepeatedEnum(message, field, i)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetRepeatedString(message, field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection->GetRepeatedMessage(message, field, i));
  }
  return nullptr;
}

OrderedJson ToJson(const Message& message) {
  const auto* descriptor = message.GetDescriptor();
  const Reflection* reflection = message.GetReflection();
  OrderedJson object = OrderedJson::object();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) {
      OrderedJson& array = object[field->name()] = OrderedJson::array();
      for (int k = 0; k < reflection->FieldSize(message, field); ++k) {
        array.push_back(Element(message, field, k));
      }
    } else if (!field->has_presence() || reflection->HasField(message, field)) {
      object[field->name()] = Single(message, field);
    }
  }
  return object;
}

}  // namespace

std::string StatusJson(const ProcessStatus& status) {
  // Text that is not UTF-8 does not pass the wire; it must not cost the answer if it does.
  return ToJson(status).dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::deploy
