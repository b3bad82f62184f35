// A lock on a file that one process has at a time, as long as it lives.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/fs/file_descriptor.h"

namespace lockstep {

// flock(2): released when the object or the process is gone, however it ends. Movable.
class FileLock {
 public:
  // Never blocks. Makes the file if it is missing and leaves it there. `holder` becomes its
  // content, for those who find it locked. ALREADY_EXISTS with the holder's text when another
  // process, or another object of this one, has it; otherwise errors as WriteError says.
  static absl::StatusOr<FileLock> TryAcquire(const std::string& path, absl::string_view holder);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace lockstep
