// The folder of a run: one launcher at a time writes to it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::deploy {

// Claims a folder for as long as this object lives. Movable.
class RunFolder {
 public:
  // Makes `path` and the folder of its logs where they are missing. FAILED_PRECONDITION while
  // another launcher has it; otherwise errors as common/fs/fs_error.h says.
  static absl::StatusOr<RunFolder> Claim(const std::string& path);
  // A new folder under "runs", named after the job and the time.
  static absl::StatusOr<RunFolder> ClaimNew(const std::string& job_name);

  // Absolute.
  const std::string& path() const { return path_; }

 private:
  RunFolder(std::string path, FileDescriptor lock);

  std::string path_;
  FileDescriptor lock_;  // of the folder; locked
};

// Removes the logs of an earlier run: regular files named *.log, nothing else.
absl::Status RemoveOldLogs(const std::string& run_folder);

}  // namespace lockstep::deploy
