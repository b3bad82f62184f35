#include "tests/oracle/report.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/oracle/replay.h"

namespace lockstep::oracle {
namespace {

// What follows from a first difference is of little use.
constexpr size_t kMostShown = 3;

std::string EntryText(int entry) {
  return entry < 0 ? "" : absl::StrCat("log entry ", entry, ", ");
}

void Print(const Script& script, const absl::StatusOr<Comparison>& comparison, std::ostream* out) {
  *out << script.place << "\n";
  if (!comparison.ok()) {
    *out << "  cannot be replayed: " << comparison.status().message() << "\n";
    return;
  }
  const std::vector<Difference>& differences = comparison->differences();
  for (size_t i = 0; i < std::min(differences.size(), kMostShown); ++i) {
    const Difference& difference = differences[i];
    *out << "  " << EntryText(difference.entry) << difference.what << ": expected "
         << difference.expected << ", got " << difference.got << "\n";
  }
  if (differences.size() > kMostShown) {
    *out << "  and " << differences.size() - kMostShown << " more\n";
  }
}

}  // namespace

void Report::Add(const Script& script) {
  const absl::StatusOr<Comparison> comparison = Replay(script);
  const bool is_equal = comparison.ok() && comparison->differences().empty();
  Line& line = lines_[script.about];
  ++line.scripts;
  if (comparison.ok()) line.worst_share = std::max(line.worst_share, comparison->worst_share());
  if (is_equal) {
    ++passed_;
    return;
  }
  ++failed_;
  ++line.failed;
  Print(script, comparison, out_);
}

void Report::Close() {
  *out_ << absl::StreamFormat("%-34s%8s%8s  %s\n", "", "scripts", "failed",
                              "worst difference / tolerance");
  for (const auto& [about, line] : lines_) {
    *out_ << absl::StreamFormat("%-34s%8d%8d  %.3g\n", about, line.scripts, line.failed,
                                line.worst_share);
  }
  *out_ << absl::StreamFormat("%d passed, %d failed\n", passed_, failed_);
}

}  // namespace lockstep::oracle
