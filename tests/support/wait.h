// Waiting for what other processes do: by events, with a limit, never by sleeping.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::test {

// A descriptor that is readable once the process has ended. Not valid when there is no such
// process.
FileDescriptor OpenProcess(pid_t pid);

// Returns when the process has ended (true) or at `deadline`.
bool WaitForEnd(const FileDescriptor& process, absl::Time deadline);

// Tells of changes of the files in a folder, from its construction on.
class FolderWatch {
 public:
  // Aborts when there is no such folder.
  explicit FolderWatch(const std::string& folder);

  // Returns when something has changed since the last call, when `process` has ended (if it is
  // valid), or at `deadline`.
  void Wait(const FileDescriptor& process, absl::Time deadline);

 private:
  FileDescriptor events_;
};

// Whether the file holds `text` before `timeout`. Its folder is there; the file may come later.
bool WaitForText(const std::string& path, const std::string& text, absl::Duration timeout);

}  // namespace lockstep::test
