#include "deploy/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "common/base/clock.h"

namespace lockstep::deploy {
namespace {

constexpr absl::Duration kPlainPeriod = absl::Seconds(5);
// A quick start needs no line of its own.
constexpr absl::Duration kFirstPlain = absl::Seconds(2);

size_t TerminalWidth() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Print(absl::string_view text, FILE* file = stdout) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

Console::Console()
    : is_terminal_(isatty(STDOUT_FILENO) != 0),
      next_plain_(Clock::Real()->Monotonic() + kFirstPlain) {}

Console::~Console() {
  if (progress_shown_) Print("\n");
}

void Console::Line(absl::string_view text) {
  ClearProgress();
  Print(std::string(text) + "\n");
}

void Console::Error(absl::string_view text) {
  ClearProgress();
  Print(std::string(text) + "\n", stderr);
}

void Console::Progress(absl::string_view text) {
  if (text == last_progress_) return;
  if (is_terminal_) {
    ClearProgress();
    Print(text.substr(0, TerminalWidth() - 1));
    progress_shown_ = true;
  } else {
    const absl::Duration now = Clock::Real()->Monotonic();
    if (now < next_plain_) return;
    Print(std::string(text) + "\n");
    next_plain_ = now + kPlainPeriod;
  }
  last_progress_ = std::string(text);
}

void Console::ClearProgress() {
  if (!progress_shown_) return;
  Print("\r\033[K");
  progress_shown_ = false;
  last_progress_.clear();
}

}  // namespace lockstep::deploy
