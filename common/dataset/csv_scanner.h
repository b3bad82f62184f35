// Splits a CSV file into records and fields by RFC 4180: commas, optional double quotes ("" is a
// quote inside them, line ends may be), LF or CRLF. A byte-order mark and empty lines are skipped.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/byte_source.h"

namespace lockstep {

// Not thread-safe.
class CsvScanner {
 public:
  // Errors of ByteSource::Open.
  static absl::StatusOr<CsvScanner> Open(const std::string& path);

  // Goes to the next record; false at the end of the file. DATA_LOSS (file, line) for a quote that
  // is not closed or followed by text, and for a record beyond 16 MiB.
  absl::StatusOr<bool> Next();

  // Of the current record. Valid until the next call of Next.
  size_t num_fields() const { return ends_.size(); }
  absl::string_view field(size_t index) const;
  // The line that it starts at, counted from 1.
  int64_t line() const { return line_; }

  const std::string& path() const { return source_->path(); }

 private:
  explicit CsvScanner(std::unique_ptr<ByteSource> source);
  // The next byte, not yet taken; -1 at the end of the file and after an error of reading.
  int Peek();
  // The same, taken; counts lines.
  int Take();
  bool Fill();
  void SkipByteOrderMark();
  void ScanField();
  void ScanPlain();
  void ScanQuoted();
  // Keeps the first error.
  void Fail(absl::string_view what);

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool started_ = false;
  absl::Status status_;
  int64_t next_line_ = 1;
  int64_t line_ = 0;
  std::string text_;          // the fields of the record, one after the other
  std::vector<size_t> ends_;  // of each field in text_
};

}  // namespace lockstep
