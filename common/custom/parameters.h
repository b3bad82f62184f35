// The parameters of a custom kind of optimizer or layer, as its code reads them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/custom.pb.h"

namespace lockstep {

// Read each parameter that the kind has by name, with the value of one that is not given; then
// Finish. Keeps a view of `kind`. Not thread-safe.
class CustomParameters {
 public:
  explicit CustomParameters(const CustomKind& kind) : kind_(kind) {}

  double Number(absl::string_view name, double fallback);
  std::string Text(absl::string_view name, absl::string_view fallback);
  bool Flag(absl::string_view name, bool fallback);

  // INVALID_ARGUMENT "custom.parameters: ..." for the first parameter that is given twice, that has
  // another kind of value than was read, or that was not read, naming those that were.
  absl::Status Finish() const;

 private:
  const CustomParameter* Find(absl::string_view name, CustomParameter::ValueCase value);

  struct Read {
    std::string name;
    CustomParameter::ValueCase value;
  };
  const CustomKind& kind_;
  std::vector<Read> read_;
};

}  // namespace lockstep
