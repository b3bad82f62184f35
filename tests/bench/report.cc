#include "tests/bench/report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep::bench {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void PrintCells(std::ostream& out, const std::string& row, const std::string& value,
                const std::string& unit, const std::string& peer_value, const std::string& ratio,
                const std::string& target, const std::string& met, const std::string& peer) {
  out << std::left << std::setw(30) << row << std::right << std::setw(10) << value << " "
      << std::left << std::setw(10) << unit << std::right << std::setw(10) << peer_value
      << std::setw(8) << ratio << std::setw(8) << target << "  " << std::left << std::setw(4) << met
      << " " << peer << std::endl;
}

}  // namespace

std::string Figure(double value) {
  const int digits =
      value == 0 ? 0
                 : std::clamp(2 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 9);
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

void PrintHeading(std::ostream& out) {
  PrintCells(out, "row", "value", "unit", "peer", "ratio", "target", "met", "compared with");
}

void PrintRow(std::ostream& out, const RowResult& result) {
  const auto optional = [](std::optional<double> value) {
    return value.has_value() ? Figure(*value) : "-";
  };
  const std::string met = !result.met().has_value() ? "-" : *result.met() ? "yes" : "no";
  PrintCells(out, result.name, Figure(result.value), result.unit, optional(result.peer_value),
             optional(result.ratio()), optional(result.target), met, result.peer);
  if (!result.note.empty()) out << "    " << result.note << std::endl;
}

nlohmann::json RowJson(const RowResult& result) {
  const auto optional = [](auto value) {
    return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
  };
  return {{"row", result.name},
          {"value", result.value},
          {"unit", result.unit},
          {"peer", result.peer},
          {"peer_value", optional(result.peer_value)},
          {"ratio", optional(result.ratio())},
          {"target", optional(result.target)},
          {"met", optional(result.met())},
          {"note", result.note}};
}

double LoadAverage() {
  double last_minute = 0;
  return getloadavg(&last_minute, 1) == 1 ? last_minute : 0;
}

nlohmann::json MachineJson() {
  utsname kernel = {};
  uname(&kernel);
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return {{"processor", ProcessorName()},
          {"cpus", std::thread::hardware_concurrency()},
          {"memory_gib", std::round(pages * page / (1 << 30) * 10) / 10},
          {"kernel", absl::StrCat(kernel.sysname, " ", kernel.release)},
          {"architecture", kernel.machine}};
}

}  // namespace lockstep::bench
