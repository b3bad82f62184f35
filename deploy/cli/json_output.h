// The file of --json: opened before the work, so that a bad path is known at once, and written
// whole at its end.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/fs/atomic_file.h"

namespace lockstep::deploy {

class JsonOutput {
 public:
  // An empty path: nothing is written.
  static absl::StatusOr<JsonOutput> Create(const std::string& path);

  absl::Status Write(absl::string_view json);

 private:
  std::optional<AtomicFile> file_;
};

}  // namespace lockstep::deploy
