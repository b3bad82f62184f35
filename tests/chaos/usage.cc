#include "tests/chaos/usage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "deploy/cli/text_table.h"

namespace lockstep::test {
namespace {

constexpr int kEarly = 1;
constexpr int kLate = 3;

struct Figure {
  const char* name;
  int64_t Usage::*value;
  int64_t slack;
};

constexpr Figure kFigures[] = {{"bytes of memory", &Usage::memory, 8 << 20},
                               {"descriptors", &Usage::descriptors, 8},
                               {"threads", &Usage::threads, 4}};

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::optional<Usage> UsageOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(folder + "/fd", error);
  if (error) return std::nullopt;
  Usage usage = {.descriptors = std::distance(begin(descriptors), end(descriptors))};
  std::ifstream status(folder + "/status");
  for (std::string name; status >> name; status.ignore(256, '\n')) {
    if (name == "Threads:") status >> usage.threads;
    if (name != "RssAnon:") continue;
    int64_t kibibytes = 0;
    status >> kibibytes;
    usage.memory = kibibytes << 10;
  }
  if (usage.threads == 0) return std::nullopt;
  return usage;
}

void UsageWatch::Add(const std::string& task, absl::Duration now, const Usage& usage) {
  const auto quarter =
      static_cast<int>(absl::FDivDuration(now, length_) * static_cast<double>(kQuarters));
  std::optional<Usage>& largest = largest_[task][std::clamp(quarter, 0, kQuarters - 1)];
  if (!largest.has_value()) largest.emplace();
  for (const Figure& figure : kFigures) {
    int64_t& most = (*largest).*figure.value;
    most = std::max(most, usage.*figure.value);
  }
}

std::vector<UsageWatch::Row> UsageWatch::Rows() const {
  std::vector<Row> rows;
  for (const auto& [task, quarters] : largest_) {
    if (!quarters[kEarly].has_value() || !quarters[kLate].has_value()) continue;
    rows.push_back({task, *quarters[kEarly], *quarters[kLate]});
  }
  return rows;
}

std::vector<std::string> UsageWatch::Growth() const {
  std::vector<std::string> lines;
  for (const Row& row : Rows()) {
    for (const Figure& figure : kFigures) {
      const int64_t early = row.early.*figure.value, late = row.late.*figure.value;
      if (late <= early + early / 10 + figure.slack) continue;
      lines.push_back(absl::StrCat(row.task, " has grown from ", early, " to ", late, " ",
                                   figure.name, " between the second and the last quarter"));
    }
  }
  return lines;
}

std::string TableOf(const UsageWatch& watch) {
  std::vector<std::vector<std::string>> lines = {
      {"at most, in the second and the last quarter", "MiB", "", "descriptors", "", "threads", ""}};
  for (const UsageWatch::Row& row : watch.Rows()) {
    lines.push_back({row.task, Mebibytes(row.early.memory), Mebibytes(row.late.memory),
                     absl::StrCat(row.early.descriptors), absl::StrCat(row.late.descriptors),
                     absl::StrCat(row.early.threads), absl::StrCat(row.late.threads)});
  }
  return deploy::TextTable(lines);
}

}  // namespace lockstep::test
