#include "deploy/cli/run_outcome.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "deploy/cli/child_process.h"
#include "deploy/cli/local_cluster.h"

namespace lockstep::deploy {
namespace {

// Below, the task found a mistake that every successor would find again (common/base/exit_code.h).
constexpr int kFirstRetryableCode = 128;

}  // namespace

RunOutcome::RunOutcome(std::vector<Member> members, int workers_needed)
    : members_(std::move(members)),
      workers_needed_(workers_needed),
      ended_(members_.size()),
      alive_(members_.size()) {
  for (const Member& member : members_) workers_alive_ += member.role == Role::kWorker;
}

std::string RunOutcome::TaskEnded(size_t task, int wait_status) {
  const auto [role, index] = members_[task];
  const int code = ExitCodeOf(wait_status);
  ended_[task] = true;
  --alive_;
  if (role == Role::kWorker) --workers_alive_;
  if (phase_ == Phase::kFailing || phase_ == Phase::kInterrupted) return "";

  const std::string what =
      absl::StrCat(TaskName(role, index), " ended with ", DescribeEnd(wait_status));
  if (code == 0) {
    if (role == Role::kChief) phase_ = Phase::kFinishing;
    return "";
  }
  if (role == Role::kWorker && code >= kFirstRetryableCode) {
    if (phase_ == Phase::kFinishing) return what + " after the job was done";
    if (workers_alive_ >= workers_needed_) return what + "; the run goes on without it";
    return Fail(task, code,
                absl::StrCat(what, "; ",
                             CountText(static_cast<uint64_t>(workers_alive_), "worker is left",
                                       "workers are left"),
                             ", a step needs ", workers_needed_));
  }
  return Fail(task, code, what);
}

std::string RunOutcome::Fail(size_t task, int exit_code, std::string why) {
  phase_ = Phase::kFailing;
  culprit_ = task;
  exit_code_ = exit_code;
  return why;
}

void RunOutcome::Interrupt(int signal) {
  phase_ = Phase::kInterrupted;
  culprit_.reset();
  exit_code_ = static_cast<int>(signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated);
}

std::string RunOutcome::FinishingTookTooLong() {
  std::vector<std::string> left;
  for (size_t task = 0; task < members_.size(); ++task) {
    if (alive(task)) left.push_back(TaskName(members_[task].role, members_[task].index));
  }
  phase_ = Phase::kFailing;
  exit_code_ = static_cast<int>(ExitCode::kBug);
  return absl::StrCat("the job is done but still running: ", absl::StrJoin(left, ", "));
}

}  // namespace lockstep::deploy
