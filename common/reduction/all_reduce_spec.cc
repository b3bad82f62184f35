#include "common/reduction/all_reduce_spec.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/nearest.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kMostShown = 80;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", Printable(text, kMostShown), "\"");
}

// Digits alone, at least one; nullopt for anything else and for what int64 does not hold.
std::optional<int64_t> ParseDigits(absl::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    if (__builtin_mul_overflow(number, 10, &number)) return std::nullopt;
    if (__builtin_add_overflow(number, digit - '0', &number)) return std::nullopt;
  }
  return number;
}

std::optional<int64_t> ParseBytes(absl::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t unit = 1;
  switch (text.back()) {
    case 'K':
    case 'k':
      unit = int64_t{1} << 10;
      break;
    case 'M':
      unit = int64_t{1} << 20;
      break;
    case 'G':
      unit = int64_t{1} << 30;
      break;
    case 'T':
      unit = int64_t{1} << 40;
      break;
    default:
      return ParseDigits(text);
  }
  const std::optional<int64_t> number = ParseDigits(text.substr(0, text.size() - 1));
  int64_t bytes = 0;
  if (!number.has_value() || __builtin_mul_overflow(*number, unit, &bytes)) return std::nullopt;
  return bytes;
}

std::string UnknownAlgorithm(absl::string_view name) {
  const std::vector<std::string> known = SpecAlgorithmNames();
  const std::string near = Nearest(name, known);
  return absl::StrCat("invalid algorithm ", Quoted(name), ", expected one of ",
                      absl::StrJoin(known, ", "),
                      near.empty() ? "" : absl::StrCat(". Did you mean ", near, "?"));
}

// The parts of a text between colons, with errors that name a place in it.
class SpecText {
 public:
  explicit SpecText(absl::string_view text) : text_(text), parts_(absl::StrSplit(text, ':')) {}

  absl::StatusOr<std::vector<AllReduceRange>> Parse() const {
    if (parts_.size() % 2 == 0) {
      return Error(text_.size(),
                   "not well formed: a limit is followed by ':' and the algorithm "
                   "for larger tensors");
    }
    std::vector<AllReduceRange> ranges;
    int64_t last = 0;
    for (size_t i = 0; i < parts_.size(); i += 2) {
      LOCKSTEP_ASSIGN_OR_RETURN(AllReduceRange range, ParseRange(parts_[i]));
      if (i + 1 < parts_.size()) {
        LOCKSTEP_ASSIGN_OR_RETURN(range.limit, ParseLimit(parts_[i + 1], last));
        last = range.limit;
      }
      ranges.push_back(range);
    }
    return ranges;
  }

 private:
  absl::StatusOr<AllReduceRange> ParseRange(absl::string_view part) const {
    const size_t mark = part.find('#');
    const absl::string_view name = part.substr(0, mark);
    const std::optional<ReductionAlgorithm> algorithm = ParseSpecAlgorithm(name);
    if (!algorithm.has_value()) return Error(At(part), UnknownAlgorithm(name));
    if (mark == absl::string_view::npos) return AllReduceRange{*algorithm};
    const absl::string_view shards = part.substr(mark + 1);
    const std::optional<int64_t> number = ParseDigits(shards);
    if (!number.has_value() || *number < 1 || *number > std::numeric_limits<int>::max()) {
      return Error(At(shards),
                   absl::StrCat("shards ", Quoted(shards),
                                ", expected a whole number from 1 on after the whole algorithm"));
    }
    return AllReduceRange{*algorithm, static_cast<int>(*number)};
  }

  absl::StatusOr<int64_t> ParseLimit(absl::string_view part, int64_t last) const {
    const std::optional<int64_t> bytes = ParseBytes(part);
    if (!bytes.has_value()) {
      return Error(At(part), absl::StrCat("limit ", Quoted(part),
                                          ", expected digits with K, k, M, G, T or nothing"));
    }
    if (*bytes <= last) {
      return Error(At(part), absl::StrCat("limit of ", *bytes, " bytes, expected more than ", last,
                                          ": limits increase"));
    }
    return *bytes;
  }

  size_t At(absl::string_view part) const { return part.data() - text_.data(); }

  absl::Status Error(size_t at, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "all_reduce_spec ", Quoted(text_), ", character ", at + 1, ": ", what,
        ". Remedy: write ALGORITHM[#SHARDS], or several as in \"pscpu:2k:pscpu#2:64k:xring\""));
  }

  const absl::string_view text_;
  const std::vector<absl::string_view> parts_;
};

absl::Status TupleError(size_t number, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("all_reduce_spec, tuple ", number, ": ", what,
                   ". Remedy: write (alg), (alg, shards) or (alg, shards, limit)"));
}

absl::StatusOr<AllReduceRange> RangeOfTuple(size_t number, const AllReduceTuple& tuple) {
  if (tuple.empty() || tuple.size() > 3) {
    return TupleError(number, absl::StrCat("Too many elements in the all-reduce spec tuple, or "
                                           "none: expected 1 to 3, got ",
                                           tuple.size()));
  }
  const auto* name = std::get_if<std::string>(&tuple[0]);
  for (size_t i = 1; i < tuple.size(); ++i) {
    if (!std::holds_alternative<int64_t>(tuple[i])) name = nullptr;
  }
  if (name == nullptr) {
    return TupleError(number, "A tuple is expected for all-reduce spec: a name, then numbers");
  }
  const std::optional<ReductionAlgorithm> algorithm = ParseSpecAlgorithm(*name);
  if (!algorithm.has_value()) return TupleError(number, UnknownAlgorithm(*name));
  const int64_t shards = tuple.size() > 1 ? std::get<int64_t>(tuple[1]) : 1;
  if (shards < 1 || shards > std::numeric_limits<int>::max()) {
    return TupleError(number, absl::StrCat("shards: expected at least 1, got ", shards));
  }
  const int64_t limit = tuple.size() > 2 ? std::get<int64_t>(tuple[2]) : -1;
  return AllReduceRange{*algorithm, static_cast<int>(shards), limit};
}

}  // namespace

absl::StatusOr<AllReduceSpec> AllReduceSpec::Parse(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<AllReduceRange> ranges, SpecText(text).Parse());
  return AllReduceSpec(std::move(ranges));
}

absl::StatusOr<AllReduceSpec> AllReduceSpec::FromTuples(absl::Span<const AllReduceTuple> tuples) {
  if (tuples.empty()) {
    return TupleError(0, "A tuple is expected for all-reduce spec: the list is empty");
  }
  std::vector<AllReduceRange> ranges;
  int64_t last = 0;
  for (size_t i = 0; i < tuples.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const AllReduceRange range, RangeOfTuple(i, tuples[i]));
    const bool is_last = i + 1 == tuples.size();
    if (is_last != (range.limit == -1)) {
      return TupleError(
          i,
          absl::StrCat(
              "limit: ", is_last ? "expected -1 in the last tuple" : "-1 belongs to the last tuple",
              ", got ", range.limit));
    }
    if (!is_last && range.limit <= last) {
      return TupleError(i, absl::StrCat("limit: expected more than ", last, ", got ", range.limit,
                                        ": limits increase"));
    }
    last = range.limit;
    ranges.push_back(range);
  }
  return AllReduceSpec(std::move(ranges));
}

int AllReduceSpec::RangeOf(int64_t bytes) const {
  const auto found = std::ranges::find_if(ranges_, [bytes](const AllReduceRange& range) {
    return range.limit == -1 || bytes <= range.limit;
  });
  return static_cast<int>(found - ranges_.begin());
}

std::string AllReduceSpec::ToString() const {
  return absl::StrJoin(ranges_, ":", [](std::string* out, const AllReduceRange& range) {
    absl::StrAppend(out, Name(range.algorithm));
    if (range.shards != 1) absl::StrAppend(out, "#", range.shards);
    if (range.limit != -1) absl::StrAppend(out, ":", range.limit);
  });
}

}  // namespace lockstep
