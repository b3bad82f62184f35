#include "tests/bench/contest.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::bench {
namespace {

const Side& SideNamed(const Contest& contest, const std::string& name) {
  const auto found = std::ranges::find(contest.sides, name, &Side::name);
  LOCKSTEP_CHECK(found != contest.sides.end());
  return *found;
}

bool IsWanted(const Comparison& comparison, const std::vector<std::string>& wanted) {
  return std::ranges::find(wanted, comparison.row) != wanted.end();
}

// By name of the side; of an absent one, why it is.
using Figures = std::map<std::string, absl::StatusOr<double>>;

Figures MeasureSides(const Contest& contest, int rounds, const std::vector<std::string>& wanted) {
  Figures figures;
  for (const Comparison& comparison : contest.comparisons) {
    if (!IsWanted(comparison, wanted)) continue;
    for (const std::string& name : {comparison.ours, comparison.peer}) {
      figures.emplace(name, absl::NotFoundError(SideNamed(contest, name).absent));
    }
  }
  std::vector<std::string> measured;
  std::vector<Measure> measures;
  for (const Side& side : contest.sides) {
    if (!side.absent.empty() || !figures.contains(side.name)) continue;
    measured.push_back(side.name);
    measures.push_back(side.measure);
  }
  const std::vector<absl::StatusOr<double>> medians = TakeTurns(rounds, measures);
  for (size_t i = 0; i < measured.size(); ++i) figures.at(measured[i]) = medians[i];
  return figures;
}

}  // namespace

absl::Status Run(const Contest& contest, int rounds, const std::vector<std::string>& wanted,
                 std::vector<RowResult>* results) {
  const Figures figures = MeasureSides(contest, rounds, wanted);
  absl::Status failure;
  for (const Comparison& comparison : contest.comparisons) {
    if (!IsWanted(comparison, wanted)) continue;
    const absl::StatusOr<double>& ours = figures.at(comparison.ours);
    if (!ours.ok()) {
      failure.Update(Annotate(ours.status(), comparison.row));
      continue;
    }
    RowResult result;
    result.name = comparison.row;
    result.value = *ours;
    result.unit = contest.unit;
    result.higher_is_better = contest.higher_is_better;
    result.target = comparison.target;
    result.note = contest.note;
    const absl::StatusOr<double>& theirs = figures.at(comparison.peer);
    result.peer = SideNamed(contest, comparison.peer).title;
    if (theirs.ok()) {
      result.peer_value = *theirs;
    } else {
      result.peer = absl::StrCat("none, ", result.peer, ": ", theirs.status().message());
    }
    results->push_back(std::move(result));
  }
  return failure;
}

RowGroup AsGroup(std::function<Contest(const BenchOptions&)> make) {
  RowGroup group;
  for (const Comparison& comparison : make({}).comparisons) group.names.push_back(comparison.row);
  group.run = [make = std::move(make)](const BenchOptions& options,
                                       const std::vector<std::string>& wanted,
                                       std::vector<RowResult>* results) {
    return Run(make(options), options.rounds, wanted, results);
  };
  return group;
}

}  // namespace lockstep::bench
