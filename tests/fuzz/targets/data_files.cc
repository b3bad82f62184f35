// Files of examples: IDX, CSV, text, gzip.
#include <algorithm>
#include <array>

#include "common/dataset/byte_source.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/idx.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

void ReadsIdx(absl::string_view input) {
  const std::string path = FileWith(input);
  CheckMessage(ReadIdxHeader(path).status());
  CheckMessage(ReadIdx(path).status());
}

// The first byte chooses the format.
void ReadsCsv(absl::string_view input) {
  if (input.empty()) return;
  CsvFormat format;
  format.header = (input[0] & 1) != 0;
  if ((input[0] & 2) != 0) format.label_column = format.header ? "label" : "0";
  absl::StatusOr<CsvReader> reader = CsvReader::Open(FileWith(input.substr(1)), format);
  CheckMessage(reader.status());
  while (reader.ok()) {
    const absl::StatusOr<bool> next = reader->Next();
    CheckMessage(next.status());
    if (!next.ok() || !*next) return;
  }
}

// A stream that expands without end is for the limit of ByteSource; no need to see all of it.
void ReadsGzip(absl::string_view input) {
  constexpr int kMostReads = 64;
  const auto source = ByteSource::Open(FileWith(input));
  CheckMessage(source.status());
  std::array<std::byte, 65536> bytes;
  for (int i = 0; source.ok() && i < kMostReads; ++i) {
    const absl::StatusOr<size_t> read = (*source)->Read(absl::MakeSpan(bytes));
    CheckMessage(read.status());
    if (!read.ok() || *read < bytes.size()) return;
  }
}

const Target kIdx("idx", ReadsIdx);
const Target kCsv("csv", ReadsCsv);
const Target kGzip("gzip", ReadsGzip);

}  // namespace
}  // namespace lockstep::fuzz
