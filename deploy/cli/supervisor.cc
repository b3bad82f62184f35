#include "deploy/cli/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "deploy/cli/last_lines.h"

namespace lockstep::deploy {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(200);
// The tasks promise to end within 2 s of the chief's.
constexpr absl::Duration kFinishGrace = absl::Seconds(10);
// Others often know why one task failed and say so before they end.
constexpr absl::Duration kFailGrace = absl::Seconds(1);
// timeout(1) and launchers signal first the process, then its group: one wish, two signals.
constexpr absl::Duration kRepeatedSignal = absl::Milliseconds(500);
// Others who have to end with a task, or the one whose port it wants, have ended by then.
constexpr absl::Duration kReturnPause = absl::Seconds(1);
constexpr int kLogLines = 8;

sigset_t HandledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

std::vector<RunOutcome::Member> Members(const std::vector<Task>& tasks) {
  std::vector<RunOutcome::Member> members;
  for (const Task& task : tasks) members.push_back({task.role, task.index});
  return members;
}

}  // namespace

Supervisor::SignalBlock::SignalBlock() {
  const sigset_t set = HandledSignals();
  sigprocmask(SIG_BLOCK, &set, &before_);
}

Supervisor::SignalBlock::~SignalBlock() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

Supervisor::Supervisor(std::vector<Task> tasks, const RunOutcome::Rules& rules, Console* console,
                       const StopGraces& graces)
    : tasks_(std::move(tasks)),
      console_(console),
      graces_(graces),
      outcome_(Members(tasks_), rules),
      pids_(tasks_.size()),
      returns_at_(tasks_.size(), absl::InfiniteDuration()) {
  const sigset_t set = HandledSignals();
  signals_ = FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Supervisor::~Supervisor() {
  Signal(SIGKILL);
  for (pid_t pid : pids_) {
    if (pid != 0) waitpid(pid, nullptr, 0);
  }
}

absl::Status Supervisor::StartAll() {
  for (size_t task = 0; task < tasks_.size(); ++task) {
    absl::StatusOr<pid_t> pid = Start(tasks_[task].command);
    if (!pid.ok()) {
      Signal(SIGKILL);
      return pid.status();
    }
    pids_[task] = *pid;
  }
  return absl::OkStatus();
}

int Supervisor::Run(const std::function<void()>& tick, const std::function<bool()>& has_begun) {
  while (!outcome_.all_ended()) {
    pollfd ready = {.fd = signals_.get(), .events = POLLIN};
    poll(&ready, 1, absl::ToInt64Milliseconds(kTick));
    HandleSignals();
    if (has_begun()) outcome_.NoteBegun();
    Reap();
    CheckReturns(has_begun);
    CheckDeadline();
    // What the chief said last is no news once the run is being stopped.
    if (!IsStopping()) tick();
  }
  if (outcome_.culprit()) ShowLog(tasks_[*outcome_.culprit()]);
  return outcome_.exit_code();
}

bool Supervisor::IsStopping() const {
  return outcome_.phase() != RunOutcome::Phase::kRunning &&
         outcome_.phase() != RunOutcome::Phase::kFinishing;
}

void Supervisor::HandleSignals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    const absl::Duration now = Clock::Real()->Monotonic();
    if (outcome_.phase() == RunOutcome::Phase::kInterrupted) {
      if (now - interrupted_at_ >= kRepeatedSignal) Signal(SIGKILL);
      continue;
    }
    interrupted_at_ = now;
    outcome_.Interrupt(info.ssi_signo);
    const std::vector<pid_t> chiefs = PidsOfChiefs();
    if (chiefs.empty()) {
      console_->Line("stopping all processes");
      AskToStop();
    } else {
      console_->Line("stopping: the chief saves and ends the job; Ctrl-C again ends all at once");
      for (const pid_t chief : chiefs) kill(chief, SIGINT);
      SetDeadline(graces_.save);
    }
  }
}

void Supervisor::AskToStop() {
  Signal(SIGTERM);
  asked_to_stop_ = true;
  // A job that ends early is saved, too, and a worker's error ends it.
  SetDeadline(PidsOfChiefs().empty() ? graces_.stop : graces_.save);
}

std::vector<pid_t> Supervisor::PidsOfChiefs() const {
  std::vector<pid_t> running;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].role == Role::kChief && pids_[task] != 0) running.push_back(pids_[task]);
  }
  return running;
}

// An interrupted chief that ends in order has told the others. One that stands by ends before it.
void Supervisor::OnChiefEnded(int wait_status, bool was_interrupted) {
  if (!PidsOfChiefs().empty()) return;
  if (asked_to_stop_) return SetDeadline(graces_.stop);  // no chief is left to save
  if (!was_interrupted) return;
  if (WIFEXITED(wait_status)) return SetDeadline(kFailGrace);
  AskToStop();
}

void Supervisor::Reap() {
  for (size_t task = 0; task < tasks_.size(); ++task) {
    int wait_status = 0;
    if (pids_[task] == 0 || waitpid(pids_[task], &wait_status, WNOHANG) != pids_[task]) continue;
    // Whatever the task started and did not end.
    kill(-pids_[task], SIGKILL);
    pids_[task] = 0;
    const RunOutcome::Phase before = outcome_.phase();
    const absl::Duration now = Clock::Real()->Monotonic();
    const auto [note, start_again] = outcome_.TaskEnded(task, wait_status, now);
    if (tasks_[task].role == Role::kChief) {
      OnChiefEnded(wait_status, before == RunOutcome::Phase::kInterrupted);
    }
    if (!note.empty())
      console_->Error(absl::StrCat(note, "; log: ", tasks_[task].command.log_path));
    if (start_again) {
      // The start is that one's, and the first command would be refused again.
      has_other_chief_ |= ExitCodeOf(wait_status) == static_cast<int>(ExitCode::kFenced);
      returns_at_[task] = now + (WIFSIGNALED(wait_status) ? absl::ZeroDuration() : kReturnPause);
    }
    if (outcome_.phase() == before) continue;
    SetDeadline(outcome_.phase() == RunOutcome::Phase::kFailing ? kFailGrace : kFinishGrace);
  }
}

void Supervisor::CheckReturns(const std::function<bool()>& has_begun) {
  const absl::Duration now = Clock::Real()->Monotonic();
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (returns_at_[task] == absl::InfiniteDuration()) continue;
    if (outcome_.phase() != RunOutcome::Phase::kRunning) {
      outcome_.CallOffReturn(task);
    } else if (now >= returns_at_[task]) {
      Return(task, has_begun());
    } else {
      continue;
    }
    returns_at_[task] = absl::InfiniteDuration();
  }
}

void Supervisor::Return(size_t task, bool has_begun) {
  Command again = tasks_[task].successor;
  if (tasks_[task].repeats_start && !has_begun && !has_other_chief_) {
    again = tasks_[task].command;
    again.continues_log = true;
  }
  const absl::StatusOr<pid_t> pid = Start(again);
  if (pid.ok()) {
    pids_[task] = *pid;
    return;
  }
  console_->Error(outcome_.CannotReturn(task, pid.status()));
  SetDeadline(kFailGrace);
}

void Supervisor::CheckDeadline() {
  if (Clock::Real()->Monotonic() < deadline_) return;
  if (outcome_.phase() == RunOutcome::Phase::kFinishing && !outcome_.all_ended()) {
    console_->Error(outcome_.FinishingTookTooLong());
  }
  if (asked_to_stop_) Signal(SIGKILL);
  AskToStop();
}

void Supervisor::SetDeadline(absl::Duration grace) {
  deadline_ = Clock::Real()->Monotonic() + grace;
}

void Supervisor::Signal(int signal) {
  for (pid_t pid : pids_) {
    if (pid != 0) kill(-pid, signal);
  }
}

void Supervisor::ShowLog(const Task& task) {
  console_->Error(absl::StrCat("the last lines of ", task.command.log_path, ":"));
  for (const std::string& line : LastLines(task.command.log_path, kLogLines)) {
    console_->Error("  " + line);
  }
}

}  // namespace lockstep::deploy
