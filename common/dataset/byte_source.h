// The bytes of a data file from front to back, decompressed where the file starts with gzip's magic
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/fs/input_file.h"

struct z_stream_s;

namespace lockstep {

// Not thread-safe.
class ByteSource {
 public:
  // Never blocks. Errors as InputFile::Open of common/fs, with the remedy.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& path);
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out`; returns fewer bytes only where the data end. DATA_LOSS for a broken gzip stream
  // (cut off, wrong checksum, bytes behind its end), and for one of more than max_size().
  absl::StatusOr<size_t> Read(absl::Span<std::byte> out);

  const std::string& path() const { return file_.path(); }
  // Position in the data, that is behind the decompression.
  int64_t offset() const { return offset_; }
  bool compressed() const { return inflate_ != nullptr; }
  // The size of the file as it is stored.
  int64_t stored_size() const { return static_cast<int64_t>(file_.size()); }
  // The most bytes that it gives: of a plain file its size. Of a gzip file 256 MiB, or 500 for each
  // byte that is stored if that is more; what expands further is all but one byte repeated.
  int64_t max_size() const;

 private:
  explicit ByteSource(InputFile file);
  absl::Status DetectGzip();
  // Reads at least one byte into the empty buffer, or none at the end of the file.
  absl::Status FillBuffer();
  absl::StatusOr<size_t> ReadFile(std::byte* out, size_t size);
  absl::StatusOr<size_t> ReadPlain(absl::Span<std::byte> out);
  absl::StatusOr<size_t> ReadGzip(absl::Span<std::byte> out);
  // Between two members of a gzip file: false where the file ends here.
  absl::StatusOr<bool> NextMember();
  absl::Status BrokenGzip(const char* what) const;
  absl::Status ExpandsTooFar() const;
  absl::Span<const std::byte> buffered() const;

  struct EndInflate {
    void operator()(z_stream_s* stream) const;
  };

  const InputFile file_;
  std::vector<std::byte> buffer_;  // of the file as it is stored; [begin_, end_) is unread
  size_t begin_ = 0;
  size_t end_ = 0;
  int64_t file_offset_ = 0;  // of buffer_'s end_
  int64_t offset_ = 0;
  std::unique_ptr<z_stream_s, EndInflate> inflate_;  // null for a plain file
  bool between_members_ = false;
};

}  // namespace lockstep
