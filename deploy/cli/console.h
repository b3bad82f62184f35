// What the launcher says: lines, and on a terminal one line of progress that is rewritten in place.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::deploy {

// From one thread.
class Console {
 public:
  Console();
  // Ends a progress line.
  ~Console();

  // To stdout.
  void Line(absl::string_view text);
  // What went wrong: to stderr.
  void Error(absl::string_view text);
  // To stdout. On a terminal the text replaces the last one, cut to the terminal's width; elsewhere
  // it becomes a line of its own, at most one in 5 s.
  void Progress(absl::string_view text);

 private:
  void ClearProgress();

  const bool is_terminal_;
  bool progress_shown_ = false;
  std::string last_progress_;
  absl::Duration next_plain_;  // monotonic
};

}  // namespace lockstep::deploy
