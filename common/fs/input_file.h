// Files to read: regular ones alone. A pipe, a socket or a device in the place of one could block a
// start for ever, or never end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_descriptor.h"

namespace lockstep {

// The whole content. Errors as InputFile::Open; INVALID_ARGUMENT, before more than `max_bytes` are
// held, for a file that is larger.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// A regular file, read at positions. Movable; const calls are thread-safe.
class InputFile {
 public:
  // Never blocks. Errors as ReadError says; INVALID_ARGUMENT, with the exit code of an input that
  // cannot be read, saying what it is for what is not a regular file.
  static absl::StatusOr<InputFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // At the time of Open.
  uint64_t size() const { return size_; }

  // Fills `bytes` from `offset` on. DATA_LOSS naming the offset when the file ends before.
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  InputFile(std::string path, FileDescriptor file, uint64_t size);

  std::string path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
};

}  // namespace lockstep
