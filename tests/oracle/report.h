// Replays scripts one after another and says what came of it.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/oracle/script.h"

namespace lockstep::oracle {

class Report {
 public:
  // Prints to `out`, which outlives this, a paragraph for each script that differs.
  explicit Report(std::ostream* out) : out_(out) {}

  void Add(const Script& script);
  // The worst difference of each kind and optimizer, then "N passed, N failed".
  void Close();

  int passed() const { return passed_; }
  int failed() const { return failed_; }

 private:
  struct Line {
    int scripts = 0;
    int failed = 0;
    double worst_share = 0;
  };

  std::ostream* const out_;
  std::map<std::string, Line> lines_;
  int passed_ = 0;
  int failed_ = 0;
};

}  // namespace lockstep::oracle
