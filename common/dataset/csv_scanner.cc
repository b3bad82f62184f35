#include "common/dataset/csv_scanner.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kScanBytes = size_t{1} << 16;
constexpr size_t kLargestRecord = size_t{1} << 24;
constexpr int kEnd = -1;
constexpr int kByteOrderMark[] = {0xef, 0xbb, 0xbf};

}  // namespace

CsvScanner::CsvScanner(std::unique_ptr<ByteSource> source)
    : source_(std::move(source)), buffer_(kScanBytes) {}

absl::StatusOr<CsvScanner> CsvScanner::Open(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto source, ByteSource::Open(path));
  return CsvScanner(std::move(source));
}

absl::string_view CsvScanner::field(size_t index) const {
  const size_t begin = index == 0 ? 0 : ends_[index - 1];
  return absl::string_view(text_).substr(begin, ends_[index] - begin);
}

absl::StatusOr<bool> CsvScanner::Next() {
  if (!started_) SkipByteOrderMark();
  started_ = true;
  text_.clear();
  ends_.clear();
  bool quoted = false;
  do {
    line_ = next_line_;
    ends_.clear();
    if (Peek() == kEnd) break;
    quoted = Peek() == '"';
    do {
      ScanField();
    } while (status_.ok() && Take() == ',');
  } while (status_.ok() && !quoted && text_.empty() && num_fields() == 1);
  if (!status_.ok()) return status_;
  return num_fields() > 0;
}

int CsvScanner::Peek() {
  if (begin_ == end_ && !Fill()) return kEnd;
  return static_cast<unsigned char>(buffer_[begin_]);
}

bool CsvScanner::Fill() {
  begin_ = 0;
  end_ = 0;
  if (!status_.ok()) return false;
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(buffer_.data()), buffer_.size());
  const auto got = source_->Read(bytes);
  if (got.ok()) {
    end_ = *got;
  } else {
    status_ = got.status();
  }
  return end_ > 0;
}

int CsvScanner::Take() {
  const int c = Peek();
  if (c == kEnd) return kEnd;
  ++begin_;
  if (c == '\n') ++next_line_;
  return c;
}

void CsvScanner::SkipByteOrderMark() {
  // A file that begins with part of a mark is no file of numbers either way.
  for (int expected : kByteOrderMark) {
    if (Peek() != expected) return;
    Take();
  }
}

void CsvScanner::ScanField() {
  if (Peek() == '"') {
    ScanQuoted();
  } else {
    ScanPlain();
  }
  if (text_.size() + ends_.size() > kLargestRecord) Fail("the record is longer than 16 MiB");
  ends_.push_back(text_.size());
}

void CsvScanner::ScanPlain() {
  const size_t begin = text_.size();
  int next = Peek();
  while (next != ',' && next != '\n' && next != kEnd && text_.size() <= kLargestRecord) {
    const char* from = buffer_.data() + begin_;
    const char* to = from;
    while (to != buffer_.data() + end_ && *to != ',' && *to != '\n') ++to;
    text_.append(from, to);
    begin_ = to - buffer_.data();
    next = Peek();
  }
  // The CR of CRLF; at the end of a file the LF may be missing.
  if (next != ',' && text_.size() > begin && text_.back() == '\r') text_.pop_back();
}

void CsvScanner::ScanQuoted() {
  Take();
  while (text_.size() <= kLargestRecord) {
    const int c = Take();
    if (c == kEnd) return Fail("the quote of a field is not closed");
    if (c == '"') {
      if (Peek() != '"') break;
      Take();
    }
    text_ += static_cast<char>(c);
  }
  if (text_.size() > kLargestRecord) return;
  const bool carriage_return = Peek() == '\r';
  if (carriage_return) Take();
  const int next = Peek();
  if (next != '\n' && next != kEnd && (next != ',' || carriage_return)) {
    Fail("text after a closing quote");
  }
}

void CsvScanner::Fail(absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::DataLossError(absl::StrCat(path(), ": line ", line_, ": ", what,
                                             ". Remedy: write comma-separated numbers, one example"
                                             " on each line."));
}

}  // namespace lockstep
