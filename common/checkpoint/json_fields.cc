#include "common/checkpoint/json_fields.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "common/checkpoint/strict_json.h"

namespace lockstep {

JsonFields::JsonFields(const nlohmann::json& json, absl::string_view where)
    : json_(json), where_(where) {
  if (!json_.is_object()) Wrong("not an object");
}

void JsonFields::Read(const char* name, std::string& value) {
  if (const nlohmann::json* field = Find(name)) {
    if (!field->is_string()) return Wrong(absl::StrCat(name, " is not a string"));
    value = field->get<std::string>();
  }
}

void JsonFields::Read(const char* name, bool& value) {
  if (const nlohmann::json* field = Find(name)) {
    if (!field->is_boolean()) return Wrong(absl::StrCat(name, " is neither true nor false"));
    value = field->get<bool>();
  }
}

void JsonFields::ReadShape(const char* name, Shape& value) {
  if (const nlohmann::json* field = Find(name)) {
    auto shape = ShapeFromJson(*field);
    if (!shape.ok()) return Wrong(shape.status().message());
    value = *std::move(shape);
  }
}

void JsonFields::Wrong(absl::string_view what) {
  if (status_.ok()) status_ = absl::DataLossError(absl::StrCat(where_, what));
}

absl::Status JsonFields::Finish() {
  if (status_.ok() && json_.size() != asked_for_.size()) {
    for (const auto& item : json_.items()) {
      if (!asked_for_.contains(item.key()))
        Wrong(absl::StrCat("unknown field '", absl::CEscape(item.key().substr(0, 80)), "'"));
    }
  }
  return status_;
}

const nlohmann::json* JsonFields::Find(const char* name) {
  if (!status_.ok()) return nullptr;
  asked_for_.insert(name);
  const auto found = json_.find(name);
  if (found != json_.end()) return &*found;
  Wrong(absl::StrCat(name, " is missing"));
  return nullptr;
}

}  // namespace lockstep
