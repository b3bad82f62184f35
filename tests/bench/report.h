// The benchmark's report: a table for people, JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/bench/row.h"

namespace lockstep::bench {

// Three significant digits, without exponents.
std::string Figure(double value);

void PrintHeading(std::ostream& out);
void PrintRow(std::ostream& out, const RowResult& result);

// {"row", "value", "unit", "peer", "peer_value", "ratio", "target", "met", "note"}; null without a
// peer; "target" and "met" are null in a row that is not judged.
nlohmann::json RowJson(const RowResult& result);

// Mean number of runnable processes over the last minute.
double LoadAverage();

// Processor, number of CPUs, memory, kernel: the figures depend on them.
nlohmann::json MachineJson();

}  // namespace lockstep::bench
