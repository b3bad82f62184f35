// ChaosReport collects the results of a chaos run: a row for each kind of fault and role.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/chaos/fault.h"

namespace lockstep::test {

struct FaultOutcome {
  Fault fault;
  bool is_alone = true;  // the only one of its round: its pause is its own
  // Until the log of another task names the target, or the full disk; infinite: none has.
  absl::Duration detected_after = absl::InfiniteDuration();
  std::string detected_by;  // that task
  // The fault is between two tasks and lasts for a lease and 1 s: each has to name the other.
  bool is_to_be_named_by_both = false;
  // Until they have; infinite: they have not.
  absl::Duration detected_by_both_after = absl::InfiniteDuration();
  absl::Duration pause;    // the longest time without a step in its round
  absl::Duration allowed;  // of all faults of the round
};

class ChaosReport {
 public:
  // `rows`: the faults that may be injected.
  explicit ChaosReport(std::vector<Fault> rows) : rows_(std::move(rows)) {}

  void Add(const FaultOutcome& outcome) { outcomes_.push_back(outcome); }
  // Adds an event that must not happen: a wrong exit code, different bits, a stalled job.
  void AddDefect(const std::string& what) { defects_.push_back(what); }

  size_t num_faults() const { return outcomes_.size(); }
  const std::vector<std::string>& defects() const { return defects_; }
  // For a terminal: a row for each kind of fault and role, then one for each row of docs/faults.md.
  std::string Table() const;
  // { "seed", "faults", "steps", "rows": [...], "documented": [...], "defects": [...] }; durations
  // in seconds.
  std::string Json(uint64_t seed, int64_t steps) const;

 private:
  struct Row;
  std::vector<Row> Rows() const;
  // A row of docs/faults.md.
  struct DocumentedRow;
  std::vector<DocumentedRow> RowsOfPage() const;
  std::string TableOfPage() const;

  const std::vector<Fault> rows_;
  std::vector<FaultOutcome> outcomes_;
  std::vector<std::string> defects_;
};

}  // namespace lockstep::test
