#include "common/custom/parameters.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"

namespace lockstep {
namespace {

absl::Status Wrong(const CustomParameter& parameter, absl::string_view problem,
                   absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("custom.parameters: \"", parameter.name(),
                                                 "\": ", problem, ". Remedy: ", remedy));
}

absl::string_view NameOf(CustomParameter::ValueCase value) {
  switch (value) {
    case CustomParameter::kNumber:
      return "number";
    case CustomParameter::kText:
      return "text";
    case CustomParameter::kFlag:
      return "flag";
    case CustomParameter::VALUE_NOT_SET:
      break;
  }
  return "nothing";
}

}  // namespace

double CustomParameters::Number(absl::string_view name, double fallback) {
  const CustomParameter* given = Find(name, CustomParameter::kNumber);
  return given == nullptr ? fallback : given->number();
}

std::string CustomParameters::Text(absl::string_view name, absl::string_view fallback) {
  const CustomParameter* given = Find(name, CustomParameter::kText);
  return given == nullptr ? std::string(fallback) : given->text();
}

bool CustomParameters::Flag(absl::string_view name, bool fallback) {
  const CustomParameter* given = Find(name, CustomParameter::kFlag);
  return given == nullptr ? fallback : given->flag();
}

absl::Status CustomParameters::Finish() const {
  std::vector<std::string> known;
  for (const Read& read : read_) known.push_back(read.name);
  for (auto given = kind_.parameters().begin(); given != kind_.parameters().end(); ++given) {
    const auto same_name = [&](const auto& other) { return other.name() == given->name(); };
    if (std::any_of(kind_.parameters().begin(), given, same_name)) {
      return Wrong(*given, "it comes twice", "give it once");
    }
    const auto read = std::find_if(read_.begin(), read_.end(),
                                   [&](const Read& of) { return of.name == given->name(); });
    if (read == read_.end()) {
      const std::string names =
          known.empty() ? "none" : absl::StrJoin(NearestFirst(given->name(), known), ", ");
      return Wrong(*given, absl::StrCat("\"", kind_.type(), "\" has no such parameter"),
                   absl::StrCat("its parameters are: ", names));
    }
    if (read->value != given->value_case()) {
      return Wrong(
          *given,
          absl::StrCat("expected ", NameOf(read->value), ", got ", NameOf(given->value_case())),
          absl::StrCat("write ", NameOf(read->value), ": ..."));
    }
  }
  return absl::OkStatus();
}

const CustomParameter* CustomParameters::Find(absl::string_view name,
                                              CustomParameter::ValueCase value) {
  read_.push_back({std::string(name), value});
  for (const CustomParameter& given : kind_.parameters()) {
    if (given.name() == name && given.value_case() == value) return &given;
  }
  return nullptr;
}

}  // namespace lockstep
