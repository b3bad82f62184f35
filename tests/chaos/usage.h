// UsageWatch detects tasks of a long run that take more and more memory, descriptors or threads.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::test {

struct Usage {
  int64_t memory = 0;  // bytes: anonymous pages in memory
  int64_t descriptors = 0;
  int64_t threads = 0;
};

// nullopt: the process has ended.
std::optional<Usage> UsageOf(pid_t pid);

// Compares the second quarter of a run with the last one; the first is warm-up. Pure.
class UsageWatch {
 public:
  // Of a run from zero to `length`.
  explicit UsageWatch(absl::Duration length) : length_(length) {}

  void Add(const std::string& task, absl::Duration now, const Usage& usage);

  struct Row {
    std::string task;
    Usage early, late;  // the largest of the second quarter, and of the last one
  };
  // Of the tasks that were seen in both.
  std::vector<Row> Rows() const;
  // A line for each figure that has grown by more than a tenth and a slack: 8 MiB, 8 descriptors or
  // 4 threads.
  std::vector<std::string> Growth() const;

 private:
  static constexpr int kQuarters = 4;

  const absl::Duration length_;
  std::map<std::string, std::array<std::optional<Usage>, kQuarters>> largest_;  // by task
};

// For a terminal.
std::string TableOf(const UsageWatch& watch);

}  // namespace lockstep::test
