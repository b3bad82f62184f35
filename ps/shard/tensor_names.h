// Names of tensors in a checkpoint.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep::ps {

// A variable's value has the variable's own name.
inline std::string SlotTensorName(absl::string_view variable, absl::string_view slot) {
  return absl::StrCat(variable, "/", slot);
}

// `optimizer` as EpochConfig::OptimizerName.
inline std::string ScalarTensorName(absl::string_view optimizer, absl::string_view scalar) {
  return absl::StrCat(optimizer, "/", scalar);
}

}  // namespace lockstep::ps
