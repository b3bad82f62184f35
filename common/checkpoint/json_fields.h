// Reads the fields of one JSON object, strictly: every one must be there, of its type, and no
// other.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/tensor/shape.h"

namespace lockstep {

// The first problem is kept, as DATA_LOSS that names the field; what is read after it is of no use.
class JsonFields {
 public:
  // `where` precedes names in errors: "shards[0]." or "". `json` outlives the reader.
  JsonFields(const nlohmann::json& json, absl::string_view where);

  void Read(const char* name, std::string& value);
  void Read(const char* name, bool& value);
  void ReadShape(const char* name, Shape& value);
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void Read(const char* name, Integer& value) {
    if (const nlohmann::json* field = Find(name)) {
      constexpr uint64_t kMax = std::numeric_limits<Integer>::max();
      if (!field->is_number_unsigned() || field->get<uint64_t>() > kMax)
        return Wrong(absl::StrCat(name, " is not a whole number of 0 to ", kMax));
      value = static_cast<Integer>(field->get<uint64_t>());
    }
  }
  // Calls `read(value, place)`, which returns a status.
  template <typename ReadValue>
  void ReadObject(const char* name, ReadValue read) {
    if (const nlohmann::json* field = Find(name)) {
      status_ = read(*field, absl::StrCat(where_, name, "."));
    }
  }
  // The same for each element, until one is not OK.
  template <typename ReadElement>
  void ReadList(const char* name, ReadElement read) {
    if (const nlohmann::json* field = Find(name)) {
      if (!field->is_array()) return Wrong(absl::StrCat(name, " is not a list"));
      size_t index = 0;
      for (const nlohmann::json& element : *field) {
        status_ = read(element, absl::StrCat(where_, name, "[", index++, "]."));
        if (!status_.ok()) return;
      }
    }
  }

  void Wrong(absl::string_view what);
  // Call last: a field that was not read is an error.
  absl::Status Finish();

 private:
  const nlohmann::json* Find(const char* name);

  const nlohmann::json& json_;
  const std::string where_;
  std::set<std::string> asked_for_;
  absl::Status status_;
};

}  // namespace lockstep
