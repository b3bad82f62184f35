// JobWarnings keeps the newest warnings of a running job for status and summary. Pure. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace lockstep::chief {

class JobWarnings {
 public:
  struct Warning {
    uint64_t number = 0;  // from 1, in the order in which they came
    std::string text;
  };

  void Add(std::string text) {
    newest_.push_back({++count_, std::move(text)});
    if (newest_.size() > kKept) newest_.pop_front();
  }
  // Oldest first.
  const std::deque<Warning>& newest() const { return newest_; }

 private:
  // A status is sent several times a second; the log has all warnings.
  static constexpr size_t kKept = 20;

  std::deque<Warning> newest_;
  uint64_t count_ = 0;
};

}  // namespace lockstep::chief
