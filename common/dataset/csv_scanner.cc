#include "common/dataset/csv_scanner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kBufferSize = size_t{1} << 16;
constexpr size_t kLargestRecord = size_t{1} << 24;
constexpr int kEnd = -1;
constexpr int kByteOrderMark[] = {0xef, 0xbb, 0xbf};

}  // namespace

CsvScanner::CsvScanner(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(kBufferSize) {}

absl::StatusOr<CsvScanner> CsvScanner::Open(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto source, ByteSource::Open(path));
  return CsvScanner(std::move(source));
}

absl::string_view CsvScanner::field(size_t index) const {
  const size_t begin = index == 0 ? 0 : ends_[index - 1];
  return absl::string_view(text_).substr(begin, ends_[index] - begin);
}

absl::StatusOr<bool> CsvScanner::Next() {
  if (!started_) LOCKSTEP_RETURN_IF_ERROR(SkipByteOrderMark());
  started_ = true;
  text_.clear();
  ends_.clear();
  while (true) {
    line_ = next_line_;
    LOCKSTEP_ASSIGN_OR_RETURN(const int first, Peek());
    if (first == kEnd) return false;
    LOCKSTEP_RETURN_IF_ERROR(first == '"' ? ScanQuoted() : ScanPlain());
    while (Take() == ',') {
      LOCKSTEP_ASSIGN_OR_RETURN(const int next, Peek());
      LOCKSTEP_RETURN_IF_ERROR(next == '"' ? ScanQuoted() : ScanPlain());
    }
    const bool empty_line = first != '"' && num_fields() == 1 && text_.empty();
    if (!empty_line) return true;
    ends_.clear();
  }
}

absl::StatusOr<int> CsvScanner::Peek() {
  if (begin_ == end_) {
    begin_ = 0;
    LOCKSTEP_ASSIGN_OR_RETURN(end_, source_->Read(absl::MakeSpan(buffer_)));
    if (end_ == 0) return kEnd;
  }
  return std::to_integer<int>(buffer_[begin_]);
}

// Always follows a Peek. Counts lines.
int CsvScanner::Take() {
  if (begin_ == end_) return kEnd;
  const int c = std::to_integer<int>(buffer_[begin_++]);
  if (c == '\n') ++next_line_;
  return c;
}

absl::Status CsvScanner::SkipByteOrderMark() {
  // A file of text that begins with part of a mark is no CSV file of numbers either way.
  for (int expected : kByteOrderMark) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int c, Peek());
    if (c != expected) break;
    Take();
  }
  return absl::OkStatus();
}

absl::Status CsvScanner::ScanPlain() {
  const size_t begin = text_.size();
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int c, Peek());
    if (c == ',' || c == '\n' || c == kEnd) break;
    const absl::string_view rest = Buffered();
    LOCKSTEP_RETURN_IF_ERROR(Append(rest.substr(0, rest.find_first_of(",\n"))));
  }
  // The CR of CRLF; at the end of a file the LF may be missing.
  LOCKSTEP_ASSIGN_OR_RETURN(const int after, Peek());
  if (after != ',' && text_.size() > begin && text_.back() == '\r') text_.pop_back();
  ends_.push_back(text_.size());
  return absl::OkStatus();
}

absl::Status CsvScanner::ScanQuoted() {
  Take();
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int c, Peek());
    if (c == kEnd) return Error("the quote of a field is not closed");
    if (c == '"') {
      Take();
      LOCKSTEP_ASSIGN_OR_RETURN(const int next, Peek());
      if (next != '"') break;
    }
    LOCKSTEP_RETURN_IF_ERROR(Append(Buffered().substr(0, 1)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(int next, Peek());
  if (next == '\r') {
    Take();
    LOCKSTEP_ASSIGN_OR_RETURN(next, Peek());
    if (next == ',') return Error("text after a closing quote");
  }
  if (next != ',' && next != '\n' && next != kEnd) return Error("text after a closing quote");
  ends_.push_back(text_.size());
  return absl::OkStatus();
}

absl::string_view CsvScanner::Buffered() const {
  return {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
}

absl::Status CsvScanner::Append(absl::string_view bytes) {
  if (text_.size() + bytes.size() > kLargestRecord) {
    return Error("the record is longer than 16 MiB");
  }
  text_.append(bytes.data(), bytes.size());
  next_line_ += std::count(bytes.begin(), bytes.end(), '\n');
  begin_ += bytes.size();
  return absl::OkStatus();
}

absl::Status CsvScanner::Error(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path(), ": line ", line_, ": ", what,
                                          ". Remedy: write comma-separated numbers, one example on"
                                          " a line."));
}

}  // namespace lockstep
