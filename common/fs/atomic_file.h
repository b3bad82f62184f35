// Files that appear whole or not at all, also after a crash: written under a temporary name in the
// same folder, fsync, rename, fsync of the folder. After a failed fsync the file is given up: the
// system may already have dropped what it could not write.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/fs/file_descriptor.h"

namespace lockstep {

// Whether a file may still appear, or go: asked right before it does, after all that takes long. A
// writer that another one has replaced meanwhile publishes nothing. Null: it may.
using PublishCheck = std::function<absl::Status()>;
absl::Status MayPublish(const PublishCheck& check);

// Writes or replaces `path`. The folder must exist. Errors as WriteError says, or of `check`; the
// old content, if any, stays.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 const PublishCheck& check = nullptr);

// The same for files too large to hold in memory. One caller at a time. Destroyed without a
// successful Commit it removes the temporary file and leaves `path` as it was.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // An error is remembered: later calls, Commit included, return it again.
  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Append(absl::string_view bytes);

  // Makes the file appear under its name, unless `check` returns an error. Call once, last.
  absl::Status Commit(const PublishCheck& check = nullptr);

 private:
  AtomicFile(std::string path, FileDescriptor folder, std::string temporary, FileDescriptor file);
  absl::Status Fail(absl::string_view action, int error_number);
  absl::Status Drop(absl::Status why);

  std::string path_;
  FileDescriptor folder_;
  std::string temporary_;  // name in the folder
  FileDescriptor file_;    // invalid once all is written, or an error has occurred
  absl::Status status_;
};

// Removes what a crash left behind in `folder`: temporary files of AtomicFile. Only for a folder
// that nobody else writes to now. Files that are begun once `check` has allowed it stay.
absl::Status RemoveTemporaryFiles(const std::string& folder, const PublishCheck& check = nullptr);

}  // namespace lockstep
