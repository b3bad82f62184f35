// Several systems that do the same, and rows that compare them two by two.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/interleave.h"
#include "tests/bench/row.h"

namespace lockstep::bench {

struct Side {
  std::string name;   // "shm", "gloo": for comparisons
  std::string title;  // "gloo all-reduce + SGD": for the table
  Measure measure;
  std::string absent = "";  // why there is nothing to measure, with the remedy; empty: there is
};

struct Comparison {
  std::string row;   // "step_shm_2w/gloo"
  std::string ours;  // names of sides
  std::string peer;
  std::optional<double> target = 1;  // of the ratio; nullopt: it is only reported
};

struct Contest {
  std::string unit;
  bool higher_is_better = false;
  std::string note;
  std::vector<Side> sides;
  std::vector<Comparison> comparisons;
};

// Measures the sides that the wanted rows compare, in turns. A peer that is absent or fails is told
// in its rows, which are not met. Otherwise as RowGroup::run.
absl::Status Run(const Contest& contest, int rounds, const std::vector<std::string>& wanted,
                 std::vector<RowResult>* results);

// All rows of the contest that `make` gives; which rows there are must not depend on the options.
RowGroup AsGroup(std::function<Contest(const BenchOptions&)> make);

}  // namespace lockstep::bench
