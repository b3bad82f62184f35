#include "common/base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/cgroups.h"

namespace lockstep {
namespace {

int CpusOfAffinity() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Rounded up; nullopt where there is no quota: "max", or -1.
std::optional<int64_t> CpusOf(absl::string_view quota, absl::string_view period) {
  int64_t time = 0;
  int64_t per = 0;
  if (!absl::SimpleAtoi(quota, &time) || !absl::SimpleAtoi(period, &per)) return std::nullopt;
  if (time <= 0 || per <= 0) return std::nullopt;
  return (time + per - 1) / per;
}

// Of one group, by the second version of control groups or by the first.
std::optional<int64_t> QuotaOf(const std::string& group, bool is_unified) {
  if (!is_unified) {
    return CpusOf(FirstLine(group + "/cpu.cfs_quota_us"), FirstLine(group + "/cpu.cfs_period_us"));
  }
  const std::string line = FirstLine(group + "/cpu.max");
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  return words.size() == 2 ? CpusOf(words[0], words[1]) : std::nullopt;
}

}  // namespace

int UsableCpus() { return UsableCpus(""); }

int UsableCpus(const std::string& root) {
  int64_t cpus = CpusOfAffinity();
  VisitCgroups(root, "cpu", [&](const std::string& group, bool is_unified) {
    cpus = std::min(cpus, QuotaOf(group, is_unified).value_or(cpus));
  });
  return static_cast<int>(std::max<int64_t>(cpus, 1));
}

}  // namespace lockstep
