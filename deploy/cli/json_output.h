// The file of --json: tried before the work, so that a bad path is known at once, and written whole
// at its end.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::deploy {

class JsonOutput {
 public:
  // An empty path: nothing is written.
  static absl::StatusOr<JsonOutput> Create(const std::string& path);

  absl::Status Write(absl::string_view json);

 private:
  std::string path_;
};

}  // namespace lockstep::deploy
