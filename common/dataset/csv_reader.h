// Examples out of a CSV file: one label column, all other columns are numeric features.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/csv_scanner.h"

namespace lockstep {

struct CsvFormat {
  // A name in the header, or a number counted from 0; empty: the file has no labels.
  std::string label_column;
  bool header = true;
};

// Not thread-safe.
class CsvReader {
 public:
  // Reads the header. INVALID_ARGUMENT naming the columns there are when the label column is not
  // one of them, when no feature is left, when the header consists of numbers that look like the
  // first example, or when something else than commas separates the columns; DATA_LOSS for a file
  // without records; otherwise as ByteSource.
  static absl::StatusOr<CsvReader> Open(const std::string& path, const CsvFormat& format);

  // Goes to the next example; false at the end of the file. DATA_LOSS (file, line, column) for a
  // wrong number of columns and for what is not a finite number.
  absl::StatusOr<bool> Next();

  // Of the current example. Valid until the next call of Next.
  const std::vector<float>& features() const { return features_; }
  double label() const { return label_; }
  int64_t line() const { return scanner_.line(); }

  bool has_labels() const { return label_index_.has_value(); }
  size_t num_features() const { return columns_.size() - (has_labels() ? 1 : 0); }
  // Names of the feature columns; without a header their numbers.
  std::vector<std::string> FeatureNames() const;

 private:
  CsvReader(CsvScanner scanner, const CsvFormat& format);
  absl::Status ReadColumns();
  absl::Status FindLabelColumn();
  absl::Status RefuseNumericHeader() const;
  absl::Status RefuseOtherSeparator() const;
  absl::StatusOr<double> Number(size_t column) const;
  absl::Status BadColumns(absl::string_view what, absl::string_view remedy) const;

  CsvScanner scanner_;
  CsvFormat format_;
  std::vector<std::string> columns_;
  std::optional<size_t> label_index_;
  bool first_record_pending_ = false;  // without a header, its columns were counted already
  std::vector<float> features_;
  double label_ = 0;
};

}  // namespace lockstep
