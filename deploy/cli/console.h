// The launcher's output: lines, and on a terminal one progress line that is rewritten in place.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::deploy {

// Not thread-safe: one thread only.
class Console {
 public:
  Console();
  // Ends a progress line.
  ~Console();

  // Writes a line to stdout.
  void Line(absl::string_view text);
  // Writes an error to stderr.
  void Error(absl::string_view text);
  // Writes to stdout. On a terminal the text replaces the last one, cut to the terminal's width;
  // elsewhere it is a line of its own, at most one in 5 s.
  void Progress(absl::string_view text);

 private:
  void ClearProgress();

  const bool is_terminal_;
  bool progress_shown_ = false;
  std::string last_progress_;
  absl::Duration next_plain_;  // monotonic
};

}  // namespace lockstep::deploy
