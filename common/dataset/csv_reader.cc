#include "common/dataset/csv_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kLongestQuote = 40;
constexpr size_t kMostColumnsNamed = 20;
constexpr std::pair<char, const char*> kOtherSeparators[] = {
    {';', "\";\""}, {'\t', "tabs"}, {'|', "\"|\""}};
constexpr size_t kMostExactDigits = 15;  // that a double holds

// For one line of an error message, whatever the file holds.
std::string Quoted(absl::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLongestQuote)), cut ? "...\"" : "\"");
}

bool IsCount(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// As people write numbers: an optional sign, spaces around it. Not NaN, not hexadecimal, and no
// dependence on the locale. Too small a number is 0.
std::optional<double> ParseNumber(absl::string_view text) {
  if (text.size() <= kMostExactDigits && IsCount(text)) {
    int64_t number = 0;
    for (char digit : text) number = number * 10 + (digit - '0');
    return static_cast<double>(number);
  }
  text = absl::StripAsciiWhitespace(text);
  if (absl::ConsumePrefix(&text, "+") && absl::StartsWith(text, "-")) return std::nullopt;
  // from_chars takes hexadecimal numbers in any format.
  if (text.find_first_of("xX") != absl::string_view::npos) return std::nullopt;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto result = absl::from_chars(text.data(), end, number);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
  if (!(std::abs(number) <= std::numeric_limits<float>::max())) return std::nullopt;
  return number;
}

}  // namespace

CsvReader::CsvReader(CsvScanner scanner, const CsvFormat& format)
    : scanner_(std::move(scanner)), format_(format) {}

absl::StatusOr<CsvReader> CsvReader::Open(const std::string& path, const CsvFormat& format) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto scanner, CsvScanner::Open(path));
  CsvReader reader(std::move(scanner), format);
  LOCKSTEP_RETURN_IF_ERROR(reader.ReadColumns());
  LOCKSTEP_RETURN_IF_ERROR(reader.FindLabelColumn());
  return reader;
}

absl::Status CsvReader::ReadColumns() {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool found, scanner_.Next());
  if (!found) {
    return absl::DataLossError(absl::StrCat(scanner_.path(), ": line 1: expected ",
                                            format_.header ? "a header" : "an example",
                                            ", got an empty file. Remedy: write one example on"
                                            " each line."));
  }
  for (size_t i = 0; i < scanner_.num_fields(); ++i) {
    columns_.push_back(format_.header ? std::string(scanner_.field(i)) : absl::StrCat(i));
  }
  first_record_pending_ = !format_.header;
  return format_.header ? RefuseNumericHeader() : absl::OkStatus();
}

// Taking the first example for the header would lose it in silence. Whole numbers that differ from
// each other are left alone: tools that have no names write 0,1,2,...
absl::Status CsvReader::RefuseNumericHeader() const {
  absl::flat_hash_set<absl::string_view> names;
  bool suspicious = false;
  for (const std::string& column : columns_) {
    if (!ParseNumber(column)) return absl::OkStatus();
    suspicious |= !IsCount(column) || !names.insert(column).second;
  }
  if (!suspicious) return absl::OkStatus();
  return BadColumns("the header consists of numbers",
                    "set no_header: true if the first line is an example");
}

// A file that is separated by something else is one column to us.
absl::Status CsvReader::RefuseOtherSeparator() const {
  if (columns_.size() > 1) return absl::OkStatus();
  for (const auto& [separator, name] : kOtherSeparators) {
    if (!absl::StrContains(scanner_.field(0), separator)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(scanner_.path(), ": line ", line(), ": expected columns separated by commas, ",
                     "got no comma, but ", name, ". Remedy: save the file with commas, and with ",
                     "decimal points (1.5)."));
  }
  return absl::OkStatus();
}

absl::Status CsvReader::FindLabelColumn() {
  LOCKSTEP_RETURN_IF_ERROR(RefuseOtherSeparator());
  const std::string& wanted = format_.label_column;
  if (!wanted.empty()) {
    const auto found = std::find(columns_.begin(), columns_.end(), wanted);
    if (found != columns_.end()) {
      if (std::find(found + 1, columns_.end(), wanted) != columns_.end()) {
        return BadColumns(absl::StrCat("several columns are named ", Quoted(wanted)),
                          "give the label column by its number");
      }
      label_index_ = found - columns_.begin();
    } else {
      size_t number;
      if (!IsCount(wanted) || !absl::SimpleAtoi(wanted, &number) || number >= columns_.size()) {
        const std::string nearest = Nearest(wanted, columns_);
        return BadColumns(absl::StrCat("no label column ", Quoted(wanted),
                                       nearest.empty() ? "" : ", did you mean ",
                                       nearest.empty() ? "" : Quoted(nearest)),
                          "set label_column to one of their names, or to a number counted from 0");
      }
      label_index_ = number;
    }
  }
  if (num_features() == 0) {
    return BadColumns("no column beside the label", "add columns with features");
  }
  features_.resize(num_features());
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvReader::Next() {
  if (!first_record_pending_) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool found, scanner_.Next());
    if (!found) return false;
  }
  first_record_pending_ = false;
  if (scanner_.num_fields() != columns_.size()) {
    return absl::DataLossError(
        absl::StrCat(scanner_.path(), ": line ", line(), ": expected ", columns_.size(),
                     " columns, got ", scanner_.num_fields(),
                     ". Remedy: separate by commas and write decimals with a point (1.5)."));
  }
  size_t feature = 0;
  for (size_t column = 0; column < columns_.size(); ++column) {
    LOCKSTEP_ASSIGN_OR_RETURN(const double number, Number(column));
    if (column == label_index_) {
      label_ = number;
    } else {
      features_[feature++] = static_cast<float>(number);
    }
  }
  return true;
}

absl::StatusOr<double> CsvReader::Number(size_t column) const {
  const absl::string_view text = scanner_.field(column);
  if (const auto number = ParseNumber(text)) return *number;
  const bool comma = text.find_first_of(",;\t") != absl::string_view::npos;
  return absl::DataLossError(absl::StrCat(
      scanner_.path(), ": line ", line(), ": column ", Quoted(columns_[column]),
      ": expected a finite number, got ", Quoted(text), ". Remedy: ",
      comma ? "separate columns by commas and write decimals with a point (1.5)."
      : absl::StripAsciiWhitespace(text).empty() ? "write a number: there are no missing values."
                                                 : "write a number; classes are 0, 1, 2, ..."));
}

std::vector<std::string> CsvReader::FeatureNames() const {
  std::vector<std::string> names = columns_;
  if (label_index_) names.erase(names.begin() + *label_index_);
  return names;
}

absl::Status CsvReader::BadColumns(absl::string_view what, absl::string_view remedy) const {
  const absl::Span<const std::string> all = columns_;
  const auto quote = [](std::string* out, const std::string& name) {
    absl::StrAppend(out, Quoted(name));
  };
  return absl::InvalidArgumentError(absl::StrCat(
      scanner_.path(), ": ", what, "; there ",
      all.size() == 1 ? "is 1 column: " : absl::StrCat("are ", all.size(), " columns: "),
      absl::StrJoin(all.subspan(0, kMostColumnsNamed), ", ", quote),
      all.size() > kMostColumnsNamed ? ", ..." : "", ". Remedy: ", remedy, "."));
}

}  // namespace lockstep
